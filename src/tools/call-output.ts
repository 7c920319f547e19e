import { stripVTControlCharacters } from "node:util";
import { withoutEnd } from "../lib/trim.ts";

export interface CallOutputDeps {
  /** Takes secrets out of a text. */
  clean: (text: string) => string;
  /** Told each piece; without it the output is only kept. */
  report: ((piece: string) => void) | undefined;
}

/** How much of the output is kept for somebody who stops the call. */
const MOST_KEPT = 8_000;
/** A longer piece is told without its beginning. */
const MOST_TOLD = 4_000;
/** Between two pieces; the longer a call goes on, the fewer there are. */
const PACES_MS = [200, 1_000, 10_000];
const PIECES_A_PACE = 100;
/** How long a line may lack its end before its beginning is told. */
const PATIENCE_MS = 1_000;
/** Where a last word begins that might be the first half of a secret, which only its whole tells; the end where there is none. */
function unfinishedWord(text: string): number {
  const start = withoutEnd(text, /[\w+/=~.-]/).length;
  return /\w/.test(text.slice(start)) ? start : text.length;
}

/** What a call prints, told in pieces while it runs. Secrets are found in whole lines, so a line is told when it is whole. */
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
      // One endless line must not grow without bound; what is cut off its beginning nobody is shown.
      waiting = (waiting + text).slice(-2 * MOST_TOLD);
      later();
    },
    /** Tells the rest. */
    end(): void {
      clearTimeout(timer);
      if (waiting !== "") tell(true);
    },
    /** The last of it, without secrets. */
    tail: () => clean(stripVTControlCharacters(kept)).trimEnd(),
  };
}
