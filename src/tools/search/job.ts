import type { OwnPlaces } from "../guard.ts";
import type { LeftOut } from "./walk.ts";

interface Common {
  /** A folder, or for a text also a file, by its real path. */
  root: string;
  glob?: string | undefined;
  /** How long to look. */
  forMs: number;
  /** What the thread makes a guard of its own from. */
  own: OwnPlaces;
}

export interface FindJob extends Common {
  glob: string;
}

export interface SearchJob extends Common {
  query: string;
  isRegex: boolean;
  /** How many lines to show around each. */
  context: number;
  /** Of the files, those whose number modulo `shares` is this one. */
  share: number;
  shares: number;
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
  /** How many lines of it fit besides. */
  more: number;
}

export interface FoundText {
  files: FoundFile[];
  isFull: boolean;
  isLate: boolean;
  left: LeftOut & { binary: number; large: number };
}

/** A pattern that is none. */
export interface Problem {
  problem: string;
}
