/** How far a backup or a restore has come. */
export interface Progress {
  step: "copying" | "packing" | "unpacking";
  files: number;
  bytes: number;
}
export type OnProgress = (progress: Progress) => void;
