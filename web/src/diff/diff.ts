export interface DiffLine {
  kind: "added" | "removed" | "same" | "hunk" | "note";
  text: string;
  old: number | undefined;
  now: number | undefined;
}
export interface DiffFile {
  path: string;
  /** What happened to the file as a whole, such as "new" or "renamed from a.ts". */
  change: string | undefined;
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
    file = { path, change: undefined, added: 0, removed: 0, lines: [] };
    files.push(file);
    inHunk = false;
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("diff --git ")) {
      begin(pathOf(line.slice("diff --git ".length)));
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      if (!file) begin("");
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      inHunk = true;
      // The whole of a new or deleted file is one hunk.
      if (file!.change !== "new" && file!.change !== "deleted")
        file!.lines.push({ kind: "hunk", text: line, old: undefined, now: undefined });
      continue;
    }
    if (!file || !inHunk) {
      const named = /^\+\+\+ (.*?)\t?$/.exec(line);
      const change = /^(new|deleted) file|^rename (from|to) (.*)$/.exec(line);
      if (named && named[1] !== "/dev/null" && (!file || file.path === "")) begin(unquoted(named[1]!).replace(/^b\//, ""));
      else if (file && change?.[1]) file.change = change[1];
      else if (file && change?.[2] === "from") file.change = `renamed from ${unquoted(change[3]!)}`;
      else if (file && change?.[2] === "to") file.path = unquoted(change[3]!);
      else if (file && /^(?:Binary files |GIT binary patch)/.test(line))
        file.lines.push({ kind: "note", text: "This file is not text.", old: undefined, now: undefined });
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

/** The path in "a/PATH b/PATH", which may contain spaces or be quoted. A renamed file is named again by its own lines. */
function pathOf(both: string): string {
  const same = /^(?:a\/(.*) b\/\1|"a\/(.*)" "b\/\2")$/.exec(both);
  if (same) return same[2] === undefined ? same[1]! : unquoted(`"${same[2]}"`);
  return unquoted(/(?<= )"?b\/.*$/.exec(both)?.[0] ?? "").replace(/^b\//, "");
}

/** Git quotes the names of files with unusual characters, and writes their bytes as octal numbers. */
function unquoted(name: string): string {
  if (!/^".*"$/.test(name)) return name;
  const bytes: number[] = [];
  const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", f: "\f", v: "\v" };
  for (const [part, octal, escaped] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/g))
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else bytes.push(...new TextEncoder().encode(escaped === undefined ? part : (escapes[escaped] ?? escaped)));
  return new TextDecoder().decode(new Uint8Array(bytes));
}
