import { visible } from "../lib/quoted.ts";
import type { ChangedFile, ChangeSummary, Difference, UndoResult } from "./changes.ts";

const MOST_FILES = 50;

/** One line per file, with its state. */
export function formatFiles(files: readonly ChangedFile[]): string[] {
  const shown = files
    .slice(0, MOST_FILES)
    .map(
      ({ state, path, from, kept }) =>
        `  ${state.padEnd(8)} ${from ? `${visible(from)} → ` : ""}${visible(path)}${kept ? ` (stays: ${kept})` : ""}`,
    );
  return files.length > MOST_FILES ? [...shown, `  … and ${files.length - MOST_FILES} more`] : shown;
}

/** The result of an undo, in a few lines. */
export function formatUndo({ id, undone, files, kept, notes }: UndoResult): string {
  const folders = [...new Set(files.map(({ folder }) => folder))];
  const head =
    files.length === 0
      ? `Nothing of ${id} could be brought back.`
      : undone
        ? `Undone: ${id}. The same again does it again.`
        : `Done again: ${id}.`;
  const lines = folders.flatMap((folder) => [
    `${visible(folder)}:`,
    ...formatFiles(files.filter((file) => file.folder === folder)),
  ]);
  const left = kept.slice(0, MOST_FILES).map(({ path, why }) => `  ${visible(path)}: ${why}`);
  return [head, ...lines, ...(kept.length > 0 ? [`Left as they are (${kept.length}):`, ...left] : []), ...notes].join("\n");
}

/** A diff with a list of its files, cut after `lines` lines. */
export function formatDifference({ text, files, notes, undone }: Difference, { lines = Number.POSITIVE_INFINITY } = {}): string {
  if (files.length === 0) return ["No change of a file is known.", ...notes].join("\n");
  const all = text.split("\n");
  const more = all.length > lines ? [`… ${all.length - lines} more lines`] : [];
  return [
    ...(undone ? ["This was undone:"] : []),
    ...formatFiles(files),
    "",
    ...all.slice(0, lines),
    ...more,
    ...(notes.length > 0 ? ["", ...notes] : []),
  ].join("\n");
}

/** The confirmation question for an undo without an id. */
export function undoQuestion({ id, files, folders, undone }: ChangeSummary): string {
  return `${undone ? "Do again" : "Undo"} ${id} (${files} ${files === 1 ? "file" : "files"} in ${folders.map(visible).join(", ")})?`;
}

/** The API path of a message or task. */
export const changesAt = (id: string): string => `/api/${id.startsWith("t_") ? "tasks" : "messages"}/${encodeURIComponent(id)}`;
