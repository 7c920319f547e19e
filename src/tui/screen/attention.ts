import { oneLine } from "../../lib/quoted.ts";

/**
 * Alerts a user who is looking elsewhere with a bell, the window title and a notification. Silent while the terminal has the
 * focus.
 */
export function createAttention(write: (bytes: string) => void) {
  let isFocused = true;
  let isTitled = false;
  return {
    focus(now: boolean): void {
      isFocused = now;
      if (now && isTitled) write("\x1b[23;2t");
      if (now) isTitled = false;
    },
    call(why: string): void {
      if (isFocused) return;
      const words = oneLine(why, 80).replaceAll(";", ",");
      // The terminal saves the old title, which is restored when it gets the focus.
      write(`${isTitled ? "" : "\x1b[22;2t"}\x1b]2;${words}\x07\x1b]9;${words}\x07\x07`);
      isTitled = true;
    },
    end(): void {
      if (isTitled) write("\x1b[23;2t");
    },
  };
}
