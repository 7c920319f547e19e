export interface DiffLine {
  kind: "added" | "removed" | "same" | "hunk" | "note";
  text: string;
  old: number | undefined;
  now: number | undefined;
}
export interface DiffFile {
  path: string;
  added: number;
  removed: number;
  lines: DiffLine[];
}

/** Parses a unified diff into files. Lines before the first file are ignored. */
export function readDiff(text: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file: DiffFile | undefined;
  let old = 0;
  let now = 0;
  let inHunk = false;
  const begin = (path: string) => {
    file = { path, added: 0, removed: 0, lines: [] };
    files.push(file);
    inHunk = false;
  };
  for (const line of text.split("\n")) {
    const head = /^diff --git a\/(.*) b\/(.*)$/.exec(line);
    if (head) {
      begin(head[2] ?? "");
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      if (!file) begin("");
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      inHunk = true;
      file!.lines.push({ kind: "hunk", text: line, old: undefined, now: undefined });
      continue;
    }
    if (!file || !inHunk) {
      const named = /^\+\+\+ (?:b\/)?(.*?)\t?$/.exec(line);
      if (named && named[1] !== "/dev/null" && (!file || file.path === "")) begin(named[1] ?? "");
      else if (file && /^(?:new file|deleted file|rename|Binary files|similarity)/.test(line))
        file.lines.push({ kind: "note", text: line, old: undefined, now: undefined });
      continue;
    }
    if (line.startsWith("+")) {
      file.added += 1;
      file.lines.push({ kind: "added", text: line.slice(1), old: undefined, now: now++ });
    } else if (line.startsWith("-")) {
      file.removed += 1;
      file.lines.push({ kind: "removed", text: line.slice(1), old: old++, now: undefined });
    } else if (line.startsWith(" ")) file.lines.push({ kind: "same", text: line.slice(1), old: old++, now: now++ });
    else if (line.startsWith("\\")) file.lines.push({ kind: "note", text: line, old: undefined, now: undefined });
  }
  return files;
}
