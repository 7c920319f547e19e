import { readPlainAt, tellAbsent } from "../lib/pinned/read.ts";

const MAX_FILE = 500_000;
const MAX_CHANGES = 1_000;
const MAX_STEPS = 2_000_000;
const AROUND = 3;

/** The unified diff that a write would make in a file. */
export function diffOf(real: string, content: string): string {
  const before = contentOf(real);
  if (typeof before !== "string") return `(${before.why})`;
  return unifiedDiff(before, content) || "(it would stay as it is)";
}

/** The current content of a file, or why it is not shown. A file that does not exist yet is empty. */
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

/** The lines that differ, with a few lines of context; "" if none does. */
export function unifiedDiff(before: string, after: string): string {
  const { changes, skipped } = compare(linesOf(before), linesOf(after));
  const isNear = nearChanges(changes);
  const out: string[] = [];
  let old = 1 + skipped;
  let fresh = 1 + skipped;
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
    out.push(`@@ -${old},${olds} +${fresh},${news} @@`);
    for (const { sign, line } of hunk) out.push(`${sign}${line}`);
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

/** The lines that differ, with unchanged lines around them, and how many unchanged lines at the beginning were skipped. */
function compare(a: string[], b: string[]): { changes: Change[]; skipped: number } {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1;
  const same = (lines: string[]) => lines.map((line): Change => ({ sign: " ", line }));
  const skipped = Math.max(0, head - AROUND);
  const end = a.length - tail;
  const middle = inTheMiddle(a.slice(head, end), b.slice(head, b.length - tail));
  return { changes: [...same(a.slice(skipped, head)), ...middle, ...same(a.slice(end, end + AROUND))], skipped };
}

/** Finds the shortest edit (Myers); if that is too much work, removes all old lines and adds all new ones. */
function inTheMiddle(a: string[], b: string[]): Change[] {
  const all = (lines: string[], sign: Sign) => lines.map((line): Change => ({ sign, line }));
  const rounds = furthestReached(a, b);
  return rounds === undefined ? [...all(a, "-"), ...all(b, "+")] : removalsFirst(wayBack(a, b, rounds));
}

/** For each number of changes, how far each diagonal had come before that round; diagonal `k` is at index `k + changes + 1`. */
function furthestReached(a: string[], b: string[]): Int32Array[] | undefined {
  const most = Math.min(a.length + b.length, MAX_CHANGES);
  const reached = new Int32Array(2 * most + 3);
  const middle = most + 1;
  const rounds: Int32Array[] = [];
  let steps = 0;
  for (let changes = 0; changes <= most; changes += 1) {
    rounds.push(reached.slice(middle - changes - 1, middle + changes + 2));
    for (let k = -changes; k <= changes; k += 2) {
      const comes = k === -changes || (k !== changes && reached[middle + k - 1]! < reached[middle + k + 1]!);
      let x = comes ? reached[middle + k + 1]! : reached[middle + k - 1]! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
        x += 1;
        steps += 1;
      }
      reached[middle + k] = x;
      if (x >= a.length && x - k >= b.length) return rounds;
    }
    steps += changes + 1;
    if (steps > MAX_STEPS) return undefined;
  }
  return undefined;
}

function wayBack(a: string[], b: string[], rounds: readonly Int32Array[]): Change[] {
  const changes: Change[] = [];
  let x = a.length;
  let y = b.length;
  for (let number = rounds.length - 1; number >= 0; number -= 1) {
    const at = (k: number) => rounds[number]![k + number + 1]!;
    const k = x - y;
    const comes = k === -number || (k !== number && at(k - 1) < at(k + 1));
    const startX = number === 0 ? 0 : at(comes ? k + 1 : k - 1);
    const startY = number === 0 ? 0 : startX - (comes ? k + 1 : k - 1);
    while (x > startX && y > startY) {
      x -= 1;
      y -= 1;
      changes.push({ sign: " ", line: a[x]! });
    }
    if (number > 0) changes.push(comes ? { sign: "+", line: b[startY]! } : { sign: "-", line: a[startX]! });
    x = startX;
    y = startY;
  }
  return changes.reverse();
}

/** Between two unchanged lines, puts removals before additions. */
function removalsFirst(changes: readonly Change[]): Change[] {
  const out: Change[] = [];
  const coming: Change[] = [];
  for (const change of changes) {
    if (change.sign === "+") coming.push(change);
    else {
      if (change.sign === " ") for (const each of coming.splice(0)) out.push(each);
      out.push(change);
    }
  }
  return [...out, ...coming];
}
