import { stripVTControlCharacters } from "node:util";
import { withoutEnd } from "../lib/trim.ts";

export interface CallOutputDeps {
  /** Redacts secrets in a text. */
  clean: (text: string) => string;
  /** Receives each piece; if missing, output is only kept. */
  report: ((piece: string) => void) | undefined;
}

/** How many characters are kept for the answer of a call that is stopped. */
const MOST_KEPT = 8_000;
/** A longer piece is reported without its beginning. */
const MOST_TOLD = 4_000;
/** The pause between two pieces; the longer a call runs, the longer it is. */
const PACES_MS = [200, 1_000, 10_000];
const PIECES_A_PACE = 100;
/** How long to wait for the end of a line before its beginning is reported. */
const PATIENCE_MS = 1_000;
/** The start of a last word that may be half a secret, which is only recognised whole; the text's end if there is none. */
function unfinishedWord(text: string): number {
  const start = withoutEnd(text, /[\w+/=~.-]/).length;
  return /\w/.test(text.slice(start)) ? start : text.length;
}

/** Reports what a call prints while it runs: in whole lines if they end soon, because secrets are found in whole lines. */
export function createCallOutput({ clean, report }: CallOutputDeps) {
  let kept = "";
  let waiting = "";
  let pieces = 0;
  let waitsSince = 0;
  let timer: NodeJS.Timeout | undefined;

  function tell(isLast: boolean): void {
    timer = undefined;
    const whole = Math.max(waiting.lastIndexOf("\n"), waiting.lastIndexOf("\r")) + 1;
    const isLate = performance.now() - waitsSince >= PATIENCE_MS;
    const upTo = isLast ? waiting.length : Math.max(whole, isLate ? unfinishedWord(waiting) : 0);
    const ready = waiting.slice(0, upTo);
    waiting = waiting.slice(ready.length);
    if (ready !== "") {
      waitsSince = performance.now();
      pieces += 1;
      report?.(clean(stripVTControlCharacters(ready)).slice(-MOST_TOLD));
    }
    if (waiting !== "" && !isLast) later();
  }

  function later(): void {
    timer ??= setTimeout(() => tell(false), PACES_MS[Math.min(2, Math.floor(pieces / PIECES_A_PACE))]).unref();
  }

  return {
    add(text: string): void {
      kept = (kept + text).slice(-MOST_KEPT);
      if (!report) return;
      if (waiting === "") waitsSince = performance.now();
      // An endless line must not grow without bound; nobody is shown what is cut off its beginning.
      waiting = (waiting + text).slice(-2 * MOST_TOLD);
      later();
    },
    /** Reports the rest. */
    end(): void {
      clearTimeout(timer);
      if (waiting !== "") tell(true);
    },
    /** The end of the output, redacted. */
    tail: () => clean(stripVTControlCharacters(kept)).trimEnd(),
  };
}
