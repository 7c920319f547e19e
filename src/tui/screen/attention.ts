import { oneLine } from "../../lib/quoted.ts";

/** Calls for a person who looks elsewhere: a bell, the title and a notification. Silent while the terminal has the focus. */
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
      // The title that was there is kept by the terminal and put back when somebody looks.
      write(`${isTitled ? "" : "\x1b[22;2t"}\x1b]2;${words}\x07\x1b]9;${words}\x07\x07`);
      isTitled = true;
    },
    end(): void {
      if (isTitled) write("\x1b[23;2t");
    },
  };
}
