import type { ReadStream, WriteStream } from "node:tty";
import { createKeyReader, type Key } from "../input/keys.ts";

export interface TtyDeps {
  input: ReadStream;
  output: WriteStream;
  onKey: (key: Key) => void;
  onResize: () => void;
  /** Called when the terminal has gone away. */
  onEnd: () => void;
}

/** Turns on bracketed paste and focus reports. */
const MODES_ON = "\x1b[?2004h\x1b[?1004h";
const MODES_OFF = "\x1b[?2004l\x1b[?1004l";
/** A lone escape byte is the Escape key if nothing follows it within this time. */
const ESCAPE_MS = 40;

/** The terminal with the modes that the chat needs. They are switched off while another program has the terminal. */
export function openTty({ input, output, onKey, onResize, onEnd }: TtyDeps) {
  const reader = createKeyReader();
  let settling: NodeJS.Timeout | undefined;
  const onData = (bytes: Buffer | string) => {
    clearTimeout(settling);
    for (const key of reader.read(bytes.toString())) onKey(key);
    if (reader.isWaiting())
      settling = setTimeout(() => {
        for (const key of reader.settle()) onKey(key);
      }, ESCAPE_MS);
  };
  let isTaken = false;
  const restore = () => void (isTaken && output.write(MODES_OFF));
  const size = () => {
    const [columns, rows] = output.getWindowSize?.() ?? [80, 24];
    return { columns: Math.max(10, columns || 80), rows: Math.max(4, rows || 24) };
  };
  return {
    write: (bytes: string) => void output.write(bytes),
    /** Queried from the system each time, because a frame must fit the current screen. */
    size,
    take(): void {
      isTaken = true;
      input.setEncoding("utf8");
      input.setRawMode(true);
      input.on("data", onData);
      input.once("end", onEnd);
      input.resume();
      output.on("resize", onResize);
      output.write(MODES_ON);
      process.once("exit", restore);
    },
    release(): void {
      clearTimeout(settling);
      input.off("data", onData);
      input.off("end", onEnd);
      output.off("resize", onResize);
      process.off("exit", restore);
      input.setRawMode(false);
      input.pause();
      restore();
      isTaken = false;
    },
  };
}
export type Tty = ReturnType<typeof openTty>;
