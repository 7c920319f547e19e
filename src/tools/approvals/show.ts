import { joinEnds, visible, withoutMiddle } from "../../lib/visible.ts";

/** How what a call says is shown to a person: without secrets, nothing hidden, and where it is too long with both its ends. */
export interface Show {
  /** As it is, over several lines. */
  (text: string): string;
  line(text: string, most?: number): string;
}

/** Of so many characters all are shown. */
const MOST = 100_000;
const LINE = 300;
/** No secret is longer: one at a cut stands whole on one side of it. */
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
