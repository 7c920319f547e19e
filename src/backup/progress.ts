/** The progress of a backup or a restore. */
export interface Progress {
  step: "copying" | "packing" | "unpacking";
  files: number;
  bytes: number;
}
export type OnProgress = (progress: Progress) => void;
