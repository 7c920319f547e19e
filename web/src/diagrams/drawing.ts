/** What the page asks its frame to draw. */
export interface DrawRequest {
  id: number;
  text: string;
  dark: boolean;
}

/** A drawn diagram as the text of an SVG file, or why it cannot be drawn. */
export type Drawing = { id: number; svg: string; title: string; width: number; height: number } | { id: number; problem: string };

/** The frame says this when it is there and wants its script, and then, once it can draw. */
export const WANTS_SCRIPT = "io: frame";
export const READY = "io: ready to draw";
