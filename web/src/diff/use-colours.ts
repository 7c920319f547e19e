import { type ShallowRef, shallowRef, watch } from "vue";
import { languageOf, type Token } from "../lib/code-tokens.ts";
import { useMarkdown } from "../lib/use-markdown.ts";
import type { DiffFile, DiffLine } from "./diff.ts";

/** The highlighted lines of files, as soon as they are available. */
export function useColours(files: () => readonly DiffFile[]): ShallowRef<ReadonlyMap<DiffLine, readonly Token[]>> {
  const markdown = useMarkdown();
  const colours = shallowRef<ReadonlyMap<DiffLine, readonly Token[]>>(new Map());
  watch(
    files,
    async (wanted) => {
      const known = new Map<DiffLine, readonly Token[]>();
      for (const file of wanted) {
        const language = languageOf(file.path);
        if (language === undefined) continue;
        // Each side is highlighted separately, so that a comment opened on one side does not affect the other.
        for (const kind of ["removed", "added"] as const) {
          const side = file.lines.filter((line) => line.kind === "same" || line.kind === kind);
          const coloured = await markdown.colour(side.map(({ text }) => text).join("\n"), language);
          for (const [index, line] of side.entries()) if (coloured?.[index]) known.set(line, coloured[index]);
        }
        if (files() !== wanted) return;
        colours.value = new Map(known);
      }
    },
    { immediate: true },
  );
  return colours;
}
