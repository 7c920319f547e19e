import { asData } from "../lib/untrusted.ts";
import { unifiedDiff } from "./diff.ts";

export interface Edit {
  old: string;
  new: string;
  /** Replaces every occurrence. */
  all?: boolean | undefined;
}

export interface EditJob {
  bytes: Uint8Array;
  edits: readonly Edit[];
}

export interface Problem {
  problem: string;
}
export interface EditedText {
  text: string;
  /** The number of places that were replaced. */
  count: number;
}
export type EditedFile = { bytes: Uint8Array; count: number; difference: string } | Problem;

const MOST_PLACES = 5;
const NEAR = 2;
const NEAREST_LINES = 20;
const NEAREST_LINE = 200;
/** Compares at most this many characters of a line. */
const COMPARED = 500;
/** The share of a text's letter pairs that a line must contain to be similar, from 0 to 1. */
const ALIKE = 0.4;
const MOST_SHOWN = 8_000;

/** Applies edits to the bytes of a file, and describes the difference. */
export function editBytes({ bytes, edits }: EditJob): EditedFile {
  const before = textIn(bytes);
  if (before === undefined) return { problem: "It is a binary file, or a text that is not encoded in UTF-8. Use shell for it." };
  const [mark] = BYTE_ORDER_MARK.exec(before)!;
  const unmarked = edits.map((edit) => ({ ...edit, old: withoutMark(edit.old), new: withoutMark(edit.new) }));
  const edited = applyEdits(withoutMark(before), unmarked);
  if ("problem" in edited) return edited;
  const { text, count } = edited;
  return { bytes: Buffer.from(mark + text, "utf8"), count, difference: difference(before, mark + text) };
}

/** No edit removes or adds the mark: it is not seen in what was read. */
const BYTE_ORDER_MARK = /^\uFEFF?/;
const withoutMark = (text: string) => text.replace(BYTE_ORDER_MARK, "");

function textIn(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    // Keeps the byte order mark, so that it is written back.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Not UTF-8: what cannot be decoded is not rewritten.
    return undefined;
  }
}

function difference(before: string, after: string): string {
  const whole = unifiedDiff(before, after);
  if (whole === "") return "(the line end at the end of the file)";
  if (whole.length <= MOST_SHOWN) return whole;
  const cut = whole.slice(0, Math.max(whole.lastIndexOf("\n", MOST_SHOWN), MOST_SHOWN / 2));
  return `${cut}\n… (${whole.slice(cut.length).split("\n").length - 1} more lines)`;
}

/**
 * Applies edits one after another, all or none. Comparing ignores line ends; new text gets the line ends of the text it
 * replaces and of the lines around it.
 */
export function applyEdits(text: string, edits: readonly Edit[]): EditedText | Problem {
  const keepsSpelling = isMixed(text);
  let current = splitEnds(text);
  let count = 0;
  for (const [index, edit] of edits.entries()) {
    const applied = applyOne(current, edit, keepsSpelling);
    if ("problem" in applied) return { problem: `${edits.length === 1 ? "" : `edits.${index}: `}${applied.problem}` };
    current = applied.text;
    count += applied.count;
  }
  const after = joinEnds(current);
  return after === text ? { problem: "Together the edits change nothing." } : { text: after, count };
}

/** A text with uniform line ends, and its original line ends. */
interface PlainText {
  plain: string;
  ends: string[];
}

const plainOf = (text: string) => text.replaceAll("\r\n", "\n");
const endsOf = (text: string): string[] => text.match(/\r?\n/g) ?? [];
const isMixed = (text: string) => text.includes("\r\n") && /(?<!\r)\n/.test(text);

function splitEnds(text: string): PlainText {
  return { plain: plainOf(text), ends: endsOf(text) };
}

function joinEnds({ plain, ends }: PlainText): string {
  return plain
    .split("\n")
    .map((line, at) => line + (ends[at] ?? ""))
    .join("");
}

/** In a text with mixed line ends, CRLF in an edit is taken literally: this is how an edit makes them uniform. */
function applyOne(text: PlainText, edit: Edit, keepsSpelling: boolean): { text: PlainText; count: number } | Problem {
  const { all = false } = edit;
  const [old, fresh] = [plainOf(edit.old), plainOf(edit.new)];
  const spelled = keepsSpelling && `${edit.old}${edit.new}`.includes("\r\n") ? endsOf(edit.new) : undefined;
  if (old === "") return { problem: "old: is empty; a new file is made with write." };
  if (spelled ? edit.old === edit.new : old === fresh) return { problem: "old and new are the same." };
  const { plain } = text;
  const places = placesOf(plain, old);
  if (places.length === 0) return { problem: `old: is not in the file.${nearest(plain, old)}` };
  const second = all ? -1 : plain.indexOf(old, (places[0] ?? 0) + 1);
  if (second >= 0) {
    // Overlapping occurrences all count, though they could not all be replaced.
    const seen = places.length > 1 ? places : [...places, second];
    const lines = [...new Set(seen.slice(0, MOST_PLACES).map((at) => lineAt(plain, at)))];
    const where = `${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")}${seen.length > MOST_PLACES ? ", …" : ""}`;
    const told = `old: is there ${seen.length} times (${where}). Take in more of the text around it, or set all.`;
    return { problem: `${told}\n${around(plain, lines)}` };
  }
  return { text: replaceAt(places, text, { old, fresh, spelled }), count: places.length };
}

interface Replacement {
  old: string;
  fresh: string;
  /** The line ends for `fresh`, if the edit spells them out. */
  spelled: readonly string[] | undefined;
}

function replaceAt(places: readonly number[], { plain, ends }: PlainText, { old, fresh, spelled }: Replacement): PlainText {
  const [oldLines, newLines] = [linesIn(old), linesIn(fresh)];
  const pieces: string[] = [];
  const newEnds: string[] = [];
  let from = 0;
  let line = 0;
  const keepUntil = (to: number) => {
    const piece = plain.slice(from, to);
    pieces.push(piece);
    for (const stop = line + linesIn(piece); line < stop; line += 1) newEnds.push(ends[line]!);
  };
  for (const place of places) {
    keepUntil(place);
    const replaced = ends.slice(line, line + oldLines);
    const near = replaced.at(-1) ?? ends[line] ?? ends[line - 1] ?? "\n";
    pieces.push(fresh);
    for (let at = 0; at < newLines; at += 1) newEnds.push(spelled?.[at] ?? replaced[at] ?? near);
    line += oldLines;
    from = place + old.length;
  }
  keepUntil(plain.length);
  return { plain: pieces.join(""), ends: newEnds };
}

function linesIn(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

function placesOf(text: string, wanted: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) places.push(at);
  return places;
}

function lineAt(text: string, at: number): number {
  let line = 1;
  for (let feed = text.indexOf("\n"); feed >= 0 && feed < at; feed = text.indexOf("\n", feed + 1)) line += 1;
  return line;
}

/** The lines nearest to a text that is missing: equal except for whitespace, or else with most of its words or letters. */
function nearest(text: string, old: string): string {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const wanted = old
    .split("\n")
    .map(squeezed)
    .filter((line) => line !== "");
  const [first = ""] = wanted;
  const words = [...new Set(first.match(/[\p{L}\p{N}_]{2,}/gu) ?? [])].slice(0, 20);
  let best = { at: -1, score: 0 };
  for (const [at, line] of lines.entries()) {
    const score = squeezed(line) === first ? words.length + 1 : words.filter((word) => line.includes(word)).length;
    if (score > best.score) best = { at, score };
  }
  const isByWords = best.at >= 0 && best.score * 2 >= words.length;
  const at = isByWords ? best.at : mostAlike(lines, first);
  if (at === undefined) return " Read the file and copy the text as it is there.";
  const from = Math.max(0, at - NEAR);
  const to = Math.min(lines.length, at + Math.max(wanted.length, 1) + NEAR, from + NEAREST_LINES);
  const shown = lines.slice(from, to).map((line, index) => numbered(line, from + index + 1));
  const isSpaces = isByWords && wanted.length > 0 && best.score > words.length;
  return ` ${isSpaces ? "Nearest, perhaps with other spaces" : "Nearest"}:\n${asData(shown.join("\n"))}`;
}

/** The given lines, each with its neighbours. */
function around(text: string, numbers: readonly number[]): string {
  const near = new Set(numbers.flatMap((number) => [number - 1, number, number + 1]));
  const shown = text.split("\n").flatMap((line, index) => (near.has(index + 1) ? [numbered(line, index + 1)] : []));
  return asData(shown.join("\n"));
}

const numbered = (line: string, number: number) => `${number}\t${line.slice(0, NEAREST_LINE)}`;

/** The line that shares most pairs of letters with a text, ignoring case; undefined if none is similar enough. */
function mostAlike(lines: readonly string[], wanted: string): number | undefined {
  const pairs = pairsOf(wanted);
  let best: { at: number; share: number } | undefined;
  for (const [at, line] of lines.entries()) {
    const own = pairsOf(line);
    const shared = [...own].filter((pair) => pairs.has(pair)).length;
    if (shared === 0 || shared < ALIKE * pairs.size) continue;
    // Of two lines that share equally many pairs, the shorter one is nearer.
    const share = shared / pairs.size + shared / (own.size + pairs.size);
    if (share > (best?.share ?? 0)) best = { at, share };
  }
  return best?.at;
}

/** The pairs of neighbouring letters, with accents separated from their letters. */
function pairsOf(line: string): Set<string> {
  const letters = squeezed(line.slice(0, COMPARED)).normalize("NFD").toLowerCase();
  return new Set(Array.from({ length: Math.max(letters.length - 1, 0) }, (_, at) => letters.slice(at, at + 2)));
}

const squeezed = (line: string) => line.replace(/\s+/g, " ").trim();
