import type { Git } from "../git/command.ts";
import type { ChangedFile } from "../protocol/changes.ts";
import type { ChangedFolder, TurnChanges } from "../store/turn-changes.ts";

const DIFF = ["-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M"];
const MOST_CHARACTERS = 400_000;
const GONE = "(git no longer holds what was changed here, so it cannot be shown)";

/** What an owner changed in one folder: a diff for people, and the list of files. */
export async function readDifference(
  { root, files, place: { commit } }: TurnChanges & { place: ChangedFolder },
  git: Git,
  { isAlone }: { isAlone: boolean },
): Promise<{ text: string; files: ChangedFile[] }> {
  const all = Object.keys(files);
  if (commit === undefined || all.length === 0) return { text: "", files: [] };
  const trees = [`${commit}^`, commit];
  const [counted, patch] = await Promise.all([
    git.run(root, [...DIFF, "--numstat", "-z", ...trees], { maxOutput: 4_000_000 }),
    git.run(root, [...DIFF, "--patch", ...trees], { maxOutput: MOST_CHARACTERS }),
  ]);
  const { binary, renamed } = countsIn(counted.code === 0 ? counted.stdout : "");
  const old = new Set(renamed.values());
  const listed = all.flatMap((path): ChangedFile[] => {
    const { before, after, kept } = files[path]!;
    const from = renamed.get(path);
    if (from === undefined && old.has(path)) return [];
    const state =
      from !== undefined ? "renamed" : !before ? "added" : !after ? "deleted" : before.oid === after.oid ? "mode" : "changed";
    return [
      {
        folder: root,
        path,
        state,
        ...(from !== undefined && { from }),
        ...(binary.has(path) && { binary: true }),
        ...(kept && { kept }),
      },
    ];
  });
  const body = patch.code === 0 ? patch.stdout.trimEnd() : GONE;
  return { text: isAlone || body === "" ? body : `# ${root}\n${body}`, files: listed };
}

/** The binary files, and the former names of renamed ones. */
function countsIn(text: string): { binary: Set<string>; renamed: Map<string, string> } {
  const binary = new Set<string>();
  const renamed = new Map<string, string>();
  const fields = text.split("\0");
  for (let at = 0; at < fields.length; at += 1) {
    const [added, , path] = (fields[at] ?? "").split("\t");
    if (added === undefined || path === undefined) continue;
    const [from = "", to = ""] = path === "" ? [fields[at + 1], fields[at + 2]] : ["", path];
    if (path === "") {
      renamed.set(to, from);
      at += 2;
    }
    if (added === "-") binary.add(to);
  }
  return { binary, renamed };
}
