import { readSync } from "node:fs";
import type { Breath } from "../lib/breath.ts";

/** Consecutive lines of a file. */
export interface Lines {
  /** Without their line ends. */
  lines: string[];
  /** The number of the first one, counted from 1. */
  first: number;
  /** The number of lines in the file; a lower bound if they are not `counted`. */
  total: number;
  counted: boolean;
  /** The last line is longer than the part that is returned. */
  isCut: boolean;
}

export interface LineRange {
  from: number;
  to: number;
  /** How many characters to return at most. */
  characters: number;
}

const CHUNK = 65_536;
/** Lines beyond this many bytes are neither shown nor counted. */
const MAX_BYTES = 100_000_000;
/** The longest encoding of a character, in bytes. */
const BYTES_PER_CHARACTER = 4;
const LINE_FEED = 10;

/** Reads lines of an open file and counts all of them; undefined if the file does not begin with UTF-8 text. */
export async function readLines(handle: number, range: LineRange, breathe: Breath): Promise<Lines | undefined> {
  const chunk = Buffer.alloc(CHUNK);
  const taken = createTaker(range);
  let position = 0;
  let complete = 0;
  let isOpen = false;
  while (position < MAX_BYTES) {
    const size = readSync(handle, chunk, 0, CHUNK, position);
    if (size === 0) break;
    const bytes = chunk.subarray(0, size);
    if (position === 0 && !isText(bytes)) return undefined;
    for (let at = 0; at < size; ) {
      const lineFeed = bytes.indexOf(LINE_FEED, at);
      taken.add(complete + 1, bytes.subarray(at, lineFeed < 0 ? size : lineFeed));
      isOpen = lineFeed < 0;
      if (isOpen) break;
      complete += 1;
      taken.endLine(complete);
      at = lineFeed + 1;
    }
    position += size;
    await breathe();
  }
  const total = complete + (isOpen ? 1 : 0);
  if (isOpen) taken.endLine(total);
  return { ...taken.result(), first: range.from, total, counted: position < MAX_BYTES };
}

/** The same for a text in memory. */
export function linesOf(text: string, range: LineRange): Lines {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const taken = createTaker(range);
  for (const [index, line] of lines.entries()) {
    taken.add(index + 1, Buffer.from(line));
    taken.endLine(index + 1);
  }
  return { ...taken.result(), first: range.from, total: lines.length, counted: true };
}

/** Collects the lines of a range until the next one does not fit. */
function createTaker({ from, to, characters }: LineRange) {
  const lines: string[] = [];
  let pieces: Buffer[] = [];
  let bytes = 0;
  let room = characters;
  let isCut = false;
  let isFull = false;
  const isWanted = (number: number) => !isFull && number >= from && number <= to;
  return {
    add(number: number, piece: Buffer) {
      if (!isWanted(number) || bytes > characters * BYTES_PER_CHARACTER) return;
      pieces.push(Buffer.from(piece));
      bytes += piece.length;
    },
    endLine(number: number) {
      if (!isWanted(number)) return;
      const line = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      bytes = 0;
      isFull = line.length > room;
      isCut = isFull && lines.length === 0;
      if (!isFull || isCut) lines.push(line.slice(0, room));
      room -= line.length + 1;
    },
    result: () => ({ lines, isCut }),
  };
}

function isText(beginning: Buffer): boolean {
  if (beginning.includes(0)) return false;
  try {
    // The last character may be incomplete.
    new TextDecoder("utf-8", { fatal: true }).decode(beginning, { stream: true });
    return true;
  } catch {
    // Not UTF-8.
    return false;
  }
}
