/** A request to the frame to draw a diagram. */
export interface DrawRequest {
  id: number;
  text: string;
  dark: boolean;
}

/** A diagram as SVG text, or why it could not be drawn. */
export type Drawing = { id: number; svg: string; title: string; width: number; height: number } | { id: number; problem: string };

/** Messages from the frame: it has loaded and wants its script, then it is ready to draw. */
export const WANTS_SCRIPT = "io: frame";
export const READY = "io: ready to draw";
