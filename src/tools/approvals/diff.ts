import { readPlainAt, tellAbsent } from "../../lib/pinned/read.ts";

const MAX_FILE = 500_000;
const MAX_CELLS = 1_000_000;
const AROUND = 3;

/** How a write would change a file, as a unified diff no longer than that. */
export function diffOf(real: string, content: string, most: number): string {
  const before = contentOf(real);
  if (typeof before !== "string") return `(${before.why})`;
  const shown = unifiedDiff(before, content);
  if (shown.length <= most) return shown || "(it would stay as it is)";
  return `${shown.slice(0, most)}\n… (${shown.length - most} more characters)`;
}

/** What a file holds now, or why that is not shown. One that is not there yet is empty. */
function contentOf(real: string): string | { why: string } {
  const read = readPlainAt(real, MAX_FILE);
  if ("bytes" in read) return read.bytes.toString("utf8");
  return read.absent === "missing" ? "" : { why: `what is there ${tellAbsent(read.absent)}, so it is not compared` };
}

type Sign = " " | "-" | "+";
interface Change {
  sign: Sign;
  line: string;
}

/** The lines that differ, with a few around them; "" where none does. */
export function unifiedDiff(before: string, after: string): string {
  const changes = compare(linesOf(before), linesOf(after));
  const isNear = nearChanges(changes);
  const out: string[] = [];
  let old = 1;
  let fresh = 1;
  for (let at = 0; at < changes.length; ) {
    if (!isNear[at]) {
      at += 1;
      old += 1;
      fresh += 1;
      continue;
    }
    const end = isNear.indexOf(false, at);
    const hunk = changes.slice(at, end < 0 ? changes.length : end);
    const olds = hunk.filter(({ sign }) => sign !== "+").length;
    const news = hunk.filter(({ sign }) => sign !== "-").length;
    out.push(`@@ -${old},${olds} +${fresh},${news} @@`, ...hunk.map(({ sign, line }) => `${sign}${line}`));
    at += hunk.length;
    old += olds;
    fresh += news;
  }
  return out.join("\n");
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function nearChanges(changes: readonly Change[]): boolean[] {
  const isNear = changes.map(() => false);
  for (const [at, { sign }] of changes.entries()) if (sign !== " ") isNear.fill(true, Math.max(0, at - AROUND), at + AROUND + 1);
  return isNear;
}

function compare(a: string[], b: string[]): Change[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const same = (lines: string[]) => lines.map((line): Change => ({ sign: " ", line }));
  const middle = inTheMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return [...same(a.slice(0, head)), ...middle, ...same(a.slice(a.length - tail))];
}

/** By the longest common subsequence, where that is not too much work; else everything goes and everything comes. */
function inTheMiddle(a: string[], b: string[]): Change[] {
  const all = (lines: string[], sign: Sign) => lines.map((line): Change => ({ sign, line }));
  if (a.length * b.length > MAX_CELLS) return [...all(a, "-"), ...all(b, "+")];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i * width + j] =
        a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const changes: Change[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      changes.push({ sign: " ", line: a[i]! });
      i += 1;
      j += 1;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) changes.push({ sign: "-", line: a[i++]! });
    else changes.push({ sign: "+", line: b[j++]! });
  }
  return [...changes, ...all(a.slice(i), "-"), ...all(b.slice(j), "+")];
}
