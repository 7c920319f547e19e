import type { DiffFile, DiffLine } from "./diff.ts";

/** A row of a diff: one line, or the old and the new line in two columns. */
export type DiffRow = { line: DiffLine; old?: undefined; now?: undefined } | { line?: undefined; old?: DiffLine; now?: DiffLine };

/** Arranges the lines in two columns, with removed lines beside the ones that replaced them. */
export function sideBySide(lines: readonly DiffLine[]): DiffRow[] {
  const rows: DiffRow[] = [];
  let removed: DiffLine[] = [];
  let added: DiffLine[] = [];
  const flush = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index += 1) {
      const [old, now] = [removed[index], added[index]];
      rows.push({ ...(old && { old }), ...(now && { now }) });
    }
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === "removed") {
      if (added.length > 0) flush();
      removed.push(line);
    } else if (line.kind === "added") added.push(line);
    else {
      flush();
      rows.push(line.kind === "same" ? { old: line, now: line } : { line });
    }
  }
  flush();
  return rows;
}

export interface Folder {
  name: string;
  files: DiffFile[];
}

/** The changed files by folder, in alphabetical order. */
export function foldersOf(files: readonly DiffFile[]): Folder[] {
  const folders = new Map<string, DiffFile[]>();
  for (const file of files) {
    const name = file.path.split("/").slice(0, -1).join("/");
    folders.set(name, [...(folders.get(name) ?? []), file]);
  }
  return [...folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inside]) => ({ name, files: inside }));
}
