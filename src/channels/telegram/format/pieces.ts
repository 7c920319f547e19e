import { isMarked, plainOf, type Run } from "./runs.ts";

/** The length limit of a Telegram message, in UTF-16 units after its entities are parsed. */
export const MAX_TEXT = 4_096;
/** The most entities of a message; Telegram drops the rest. */
const MAX_ENTITIES = 100;

/** Splits text into messages: between blocks if possible, and inside an entity only if it alone is too long. */
export function cutIntoPieces(runs: readonly Run[], limit = MAX_TEXT): Run[][] {
  const pieces: Run[][] = [];
  let rest = trimmed(runs);
  while (rest.length > 0) {
    const room = roomFor(rest, limit);
    if (room === undefined) {
      pieces.push(rest);
      break;
    }
    const at = bestCut(rest, room);
    const [head, tail] = splitAt(rest, at);
    pieces.push(trimmed(head));
    rest = trimmed(tail);
  }
  return pieces.filter((piece) => piece.length > 0);
}

/** How much fits into one message; undefined if all of it does. */
function roomFor(runs: readonly Run[], limit: number): number | undefined {
  let length = 0;
  let entities = 0;
  for (const run of runs) {
    if (isMarked(run)) entities += 1;
    if (entities > MAX_ENTITIES) return Math.min(limit, length);
    length += run.text.length;
  }
  return length > limit ? limit : undefined;
}

/** The last good place to cut, best kind first; a cut in the second half beats a better one far ahead. */
function bestCut(runs: readonly Run[], room: number): number {
  const kinds = cutsOf(runs, room);
  for (const cuts of kinds) {
    const last = cuts.at(-1);
    if (last !== undefined && last > room / 2) return last;
  }
  const outside = kinds.slice(0, 4).flat();
  if (outside.length > 0) return Math.max(...outside);
  return kinds.flat().at(-1) ?? wholeLetters(plainOf(runs), room);
}

/**
 * Places to cut up to `room`: between blocks, at a line's end, at a space, beside an entity; then inside one, by lines and
 * spaces.
 */
function cutsOf(runs: readonly Run[], room: number): number[][] {
  const [gaps, lines, spaces, edges, innerLines, innerSpaces]: number[][] = [[], [], [], [], [], []];
  let at = 0;
  for (const [index, run] of runs.entries()) {
    if (at > room) break;
    const marked = isMarked(run);
    const before = runs[index - 1];
    if (at > 0 && before && !isJoined(before, run)) edges!.push(at);
    if (run.gap && !run.quote) gaps!.push(at);
    else if (run.pre === undefined)
      for (const { index: offset, 0: white } of run.text.matchAll(/\n|[ \t]+/g)) {
        const place = at + offset;
        if (place === 0 || place > room) continue;
        const isLine = white === "\n";
        (marked ? (isLine ? innerLines : innerSpaces) : isLine ? lines : spaces)!.push(place);
      }
    at += run.text.length;
  }
  return [gaps!, lines!, spaces!, edges!, innerLines!, innerSpaces!].map((cuts) => cuts.filter((cut) => cut > 0 && cut <= room));
}

/** Whether two runs belong to one entity that should stay whole. */
function isJoined(a: Run, b: Run): boolean {
  return Boolean(a.quote && b.quote) || (a.link !== undefined && a.link === b.link);
}

function splitAt(runs: readonly Run[], at: number): [Run[], Run[]] {
  const head: Run[] = [];
  const tail: Run[] = [];
  let length = 0;
  for (const run of runs) {
    const left = at - length;
    length += run.text.length;
    if (left >= run.text.length) head.push(run);
    else if (left <= 0) tail.push(run);
    else {
      head.push({ ...run, text: run.text.slice(0, left) });
      tail.push({ ...run, text: run.text.slice(left) });
    }
  }
  return [head, tail];
}

/** The end of the last whole grapheme that fits. */
function wholeLetters(text: string, room: number): number {
  let end = 0;
  for (const { index, segment } of new Intl.Segmenter().segment(text.slice(0, room + 100))) {
    if (index + segment.length > room) break;
    end = index + segment.length;
  }
  return end > 0 ? end : room;
}

/** Telegram strips whitespace at both ends of a message. */
function trimmed(runs: readonly Run[]): Run[] {
  const kept = runs.filter(({ text }) => text !== "");
  while (kept[0] && kept[0].pre === undefined && kept[0].text.trimStart() === "") kept.shift();
  while (kept.at(-1) && kept.at(-1)!.pre === undefined && kept.at(-1)!.text.trimEnd() === "") kept.pop();
  const first = kept[0];
  if (first && first.pre === undefined) kept[0] = { ...first, text: first.text.replace(/^\s*\n/, "").replace(/^\s+$/, "") };
  const last = kept.at(-1);
  if (last && last.pre === undefined) kept[kept.length - 1] = { ...last, text: last.text.trimEnd() };
  return kept;
}
