import { asData } from "../lib/untrusted.ts";
import { unifiedDiff } from "./diff.ts";

export interface Edit {
  old: string;
  new: string;
  /** Replace it wherever it stands. */
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
  /** In how many places. */
  count: number;
}
export type EditedFile = { bytes: Uint8Array; count: number; difference: string } | Problem;

const MOST_PLACES = 5;
const NEAR = 2;
const NEAREST_LINES = 20;
const NEAREST_LINE = 200;
/** Of a line so much is compared with another, letter by letter. */
const COMPARED = 500;
/** How much of a text a line holds if the two are alike, from 0 to 1. */
const ALIKE = 0.4;
const MOST_SHOWN = 8_000;

/** The bytes of a file with its edits, and how they differ from those before. */
export function editBytes({ bytes, edits }: EditJob): EditedFile {
  const before = textIn(bytes);
  if (before === undefined) return { problem: "It is a binary file." };
  const edited = applyEdits(before, edits);
  if ("problem" in edited) return edited;
  const { text, count } = edited;
  return { bytes: Buffer.from(text, "utf8"), count, difference: difference(before, text) };
}

function textIn(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    // With its byte order mark, so that it is written back.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Not UTF-8: what is not understood is not written anew.
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

/** Applies edits one after another, or none of them. Line ends of a file that has one kind alone are kept; what is new gets them. */
export function applyEdits(text: string, edits: readonly Edit[]): EditedText | Problem {
  const ends = lineEndsOf(text);
  const unified = (piece: string) => (ends === "mixed" ? piece : piece.replaceAll("\r\n", "\n"));
  let current = unified(text);
  let count = 0;
  for (const [index, edit] of edits.entries()) {
    const applied = applyOne(current, { ...edit, old: unified(edit.old), new: unified(edit.new) });
    if ("problem" in applied) return { problem: `${edits.length === 1 ? "" : `edits.${index}: `}${applied.problem}` };
    current = applied.text;
    count += applied.count;
  }
  return { text: ends === "\r\n" ? current.replaceAll("\n", "\r\n") : current, count };
}

function lineEndsOf(text: string): "\n" | "\r\n" | "mixed" {
  if (!text.includes("\r\n")) return "\n";
  return /(?<!\r)\n/.test(text) ? "mixed" : "\r\n";
}

function applyOne(text: string, { old, new: fresh, all = false }: Edit): EditedText | Problem {
  if (old === "") return { problem: "old: is empty; a new file is made with write." };
  if (old === fresh) return { problem: "old and new are the same." };
  // Where line ends are mixed, a text is also found with the ends that it would have on Windows.
  const [found = old] = [old, old.replace(/(?<!\r)\n/g, "\r\n")].filter((each) => text.includes(each));
  const places = placesOf(text, found);
  if (places.length === 0) return { problem: `old: is not in the file.${nearest(text, old)}` };
  const second = all ? -1 : text.indexOf(found, (places[0] ?? 0) + 1);
  if (second >= 0) {
    // Where the text overlaps itself, it is there more often than it could be replaced.
    const seen = places.length > 1 ? places : [...places, second];
    const lines = [...new Set(seen.slice(0, MOST_PLACES).map((at) => lineAt(text, at)))];
    const where = `${lines.length === 1 ? "line" : "lines"} ${lines.join(", ")}${seen.length > MOST_PLACES ? ", …" : ""}`;
    return { problem: `old: is there ${seen.length} times (${where}). Take in more of the text around it, or set all.` };
  }
  const put = found === old ? fresh : fresh.replace(/(?<!\r)\n/g, "\r\n");
  const pieces: string[] = [];
  let from = 0;
  for (const at of places) {
    pieces.push(text.slice(from, at), put);
    from = at + found.length;
  }
  pieces.push(text.slice(from));
  return { text: pieces.join(""), count: places.length };
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

/** The lines that come nearest to a text that is not there: the same but for spaces, else with most of its words or letters. */
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
  const shown = lines.slice(from, to).map((line, index) => `${from + index + 1}\t${line.slice(0, NEAREST_LINE)}`);
  const isSpaces = isByWords && wanted.length > 0 && best.score > words.length;
  return ` ${isSpaces ? "Nearest, perhaps with other spaces" : "Nearest"}:\n${asData(shown.join("\n"))}`;
}

/** The line that shares most pairs of letters with a text, whatever their case; undefined if none is much alike. */
function mostAlike(lines: readonly string[], wanted: string): number | undefined {
  const pairs = pairsOf(wanted);
  let best: { at: number; share: number } | undefined;
  for (const [at, line] of lines.entries()) {
    const own = pairsOf(line);
    const shared = [...own].filter((pair) => pairs.has(pair)).length;
    if (shared === 0 || shared < ALIKE * pairs.size) continue;
    // Of lines that share as much the shorter one is nearer.
    const share = shared / pairs.size + shared / (own.size + pairs.size);
    if (share > (best?.share ?? 0)) best = { at, share };
  }
  return best?.at;
}

/** The pairs of neighbouring letters, with accents apart from their letters. */
function pairsOf(line: string): Set<string> {
  const letters = squeezed(line.slice(0, COMPARED)).normalize("NFD").toLowerCase();
  return new Set(Array.from({ length: Math.max(letters.length - 1, 0) }, (_, at) => letters.slice(at, at + 2)));
}

const squeezed = (line: string) => line.replace(/\s+/g, " ").trim();
