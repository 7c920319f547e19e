const CONTEXT = 3;
/**
 * With more lines than this on each side, a table of all pairs would be too large, so the changed part is shown as one piece.
 */
const MOST = 2_000;

type Mark = [mark: " " | "-" | "+", text: string];

/** The changes between two texts, as a unified diff of one file. */
export function lineDiff(path: string, before: string, after: string): string {
  const marks = compare(before.split("\n"), after.split("\n"));
  const out = [`diff --git a/${path} b/${path}`];
  let [old, now] = [1, 1];
  for (let index = 0; index < marks.length; ) {
    if (marks[index]![0] === " ") {
      index += 1;
      old += 1;
      now += 1;
      continue;
    }
    const start = Math.max(0, index - CONTEXT);
    let end = index;
    for (let quiet = 0; end < marks.length && quiet <= CONTEXT * 2; end += 1) quiet = marks[end]![0] === " " ? quiet + 1 : 0;
    const hunk = marks.slice(start, end);
    out.push(`@@ -${old - (index - start)} +${now - (index - start)} @@`, ...hunk.map(([mark, text]) => mark + text));
    for (const [mark] of marks.slice(index, end)) {
      if (mark !== "+") old += 1;
      if (mark !== "-") now += 1;
    }
    index = end;
  }
  return out.join("\n");
}

/** Finds the longest common subsequence of lines, after setting aside equal lines at the start and the end. */
function compare(a: string[], b: string[]): Mark[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const same = (lines: string[]): Mark[] => lines.map((text) => [" ", text]);
  const [left, right] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  return [...same(a.slice(0, head)), ...middle(left, right), ...same(a.slice(a.length - tail))];
}

function middle(a: string[], b: string[]): Mark[] {
  const removed = (lines: string[]): Mark[] => lines.map((text) => ["-", text]);
  const added = (lines: string[]): Mark[] => lines.map((text) => ["+", text]);
  if (a.length * b.length > MOST * MOST) return [...removed(a), ...added(b)];
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      table[i * width + j] =
        a[i] === b[j] ? table[(i + 1) * width + j + 1]! + 1 : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
  const marks: Mark[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      marks.push([" ", a[i]!]);
      i += 1;
      j += 1;
    } else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) {
      marks.push(["-", a[i]!]);
      i += 1;
    } else {
      marks.push(["+", b[j]!]);
      j += 1;
    }
  }
  return [...marks, ...removed(a.slice(i)), ...added(b.slice(j))];
}
