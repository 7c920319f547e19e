import { joinEnds, visible, withoutMiddle } from "../../lib/visible.ts";

/** Shows a person what a call says: redacted, with nothing hidden, and shortened in the middle if it is too long. */
export interface Show {
  /** The text as it is, over several lines. */
  (text: string): string;
  line(text: string, most?: number): string;
}

/** Texts of up to this many characters are shown whole. */
const MOST = 100_000;
const LINE = 300;
/** No secret is longer than this, so a secret at a cut is whole on one side of it. */
const EDGE = 10_000;

export function createShow(mark: (text: string) => string): Show {
  const shown = (text: string, most: number, tidy: (text: string) => string = (whole) => whole) => {
    const part = (raw: string) => tidy(visible(mark(raw)));
    const reach = most + EDGE;
    if (text.length <= 2 * reach) return withoutMiddle(part(text), most);
    return joinEnds(part(text.slice(0, reach)), part(text.slice(-reach)), most, text.length - most);
  };
  const line = (text: string, most = LINE) => shown(text, most, (whole) => whole.replace(/\s+/g, " ").trim());
  return Object.assign((text: string) => shown(text, MOST), { line });
}
