import type { WriteStream } from "node:tty";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { looksOf } from "./screen/looks.ts";
import { createScreen } from "./screen/screen.ts";
import { coloured, dim, lineWidth, paint } from "./text/style.ts";
import { clip } from "./text/wrap.ts";
import { seconds, spinner } from "./transcript/tools.ts";

export interface WorkingDeps {
  output: WriteStream;
  env: NodeJS.ProcessEnv;
  now?: () => number;
}

/** Work that is done sooner shows no line. */
const QUIET_MS = 300;
const TICK_MS = 120;

/** A line below all other output with the current activity and its duration. It disappears at the end. */
export function createWorkingLine({ output, env, now = () => performance.now() }: WorkingDeps) {
  const looks = looksOf(env);
  const size = () => output.getWindowSize?.() ?? [80, 24];
  const columns = () => Math.max(10, size()[0] || 80);
  const screen = createScreen({
    write: (bytes) => void output.write(bytes),
    columns,
    rows: () => Math.max(4, size()[1] || 24),
    reflows: looks.reflows,
  });
  const began = now();
  let what = "";
  let drawnAt = began + QUIET_MS - TICK_MS;
  let isDrawn = false;
  const draw = () => {
    if (now() - drawnAt < TICK_MS) return;
    drawnAt = now();
    isDrawn = true;
    const line = clip([coloured(spinner(now()), "cyan"), dim(` ${what}  ${seconds(now() - began)}`)], columns() - 1);
    screen.draw({ above: [], live: [{ text: paint(line, looks), width: lineWidth(line) }], caret: { row: 0, column: 0 } });
  };
  const ticking = setInterval(draw, TICK_MS).unref();
  return {
    /** Draws immediately, in case the work blocks the event loop. */
    tell(text: string): void {
      what = terminalSafe(text).replace(/\s+/g, " ");
      draw();
    },
    end(): void {
      clearInterval(ticking);
      if (isDrawn) screen.clear();
    },
  };
}
