import type { OwnPlaces } from "../guard.ts";
import type { LeftOut } from "./walk.ts";

interface Common {
  /** The real path of a folder, or for a text search also of a file. */
  root: string;
  glob?: string | undefined;
  /** The time limit in milliseconds. */
  forMs: number;
  /** What the thread builds its own guard from. */
  own: OwnPlaces;
  /** Which of several threads this is; it looks only at its share. */
  share: number;
  shares: number;
}

export interface FindJob extends Common {
  glob: string;
}

export interface SearchJob extends Common {
  query: string;
  isRegex: boolean;
  /** How many lines to show around each match. */
  context: number;
}

export type Job = FindJob | SearchJob;

export interface FoundPaths {
  paths: string[];
  /** There are more. */
  isFull: boolean;
  isLate: boolean;
  left: LeftOut;
}

export interface FoundLine {
  number: number;
  text: string;
  isMatch: boolean;
}

export interface FoundFile {
  parts: readonly string[];
  lines: FoundLine[];
  /** How many more lines of the file match. */
  more: number;
}

export interface FoundText {
  files: FoundFile[];
  isFull: boolean;
  isLate: boolean;
  left: LeftOut & { binary: number; large: number };
}

/** Why a pattern is invalid. */
export interface Problem {
  problem: string;
}
