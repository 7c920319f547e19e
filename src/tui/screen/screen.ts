/** A row of the live region as written to the terminal, and its width in columns. */
export interface Row {
  text: string;
  width: number;
}

export interface Frame {
  /** Finished lines to print once above the live region. The terminal may wrap them. */
  above: readonly string[];
  live: readonly Row[];
  /** The caret's position in the live region. */
  caret: { row: number; column: number };
}

export interface ScreenDeps {
  write: (bytes: string) => void;
  columns: () => number;
  rows: () => number;
  /** Whether the terminal rewraps long rows when it gets narrower; most do. */
  reflows: boolean;
}

const BEGIN = "\x1b[?2026h";
const END = "\x1b[?2026l";
/** If the terminal has just become narrower, rows that are too long are cut instead of wrapped. */
const NO_WRAP = "\x1b[?7l";
const WRAP = "\x1b[?7h";

/**
 * Draws in the terminal's normal screen: finished lines are printed above a live region at the end of the output and never
 * touched again. All movements are relative to the caret, so the scrollback remains the terminal's own.
 */
export function createScreen({ write, columns, rows, reflows }: ScreenDeps) {
  let drawn: readonly Row[] = [];
  let caret = { row: 0, column: 0 };
  let width = columns();

  /** How many terminal rows the first `count` rows of the live region take up now. */
  const heightOf = (count: number): number => {
    const now = columns();
    if (now >= width || !reflows) return count;
    return drawn.slice(0, count).reduce((sum, row) => sum + Math.max(1, Math.ceil(row.width / now)), 0);
  };
  /** How far the caret is below the first row of the live region, as the terminal shows it now. */
  const depth = (): number => {
    const within = columns() < width && reflows ? Math.floor(caret.column / columns()) : 0;
    return Math.min(heightOf(caret.row) + within, rows() - 1);
  };
  /**
   * Erases the live region and moves to its start. Never erases from the corner of the screen, which some terminals treat as a
   * new page.
   */
  const erase = (): string => {
    if (drawn.length === 0) return "\r";
    const up = depth();
    const start = `\r${up > 0 ? `\x1b[${up}A` : ""}\x1b[K`;
    // A single row may be the screen's last, where moving down is impossible.
    return heightOf(drawn.length) > 1 ? `${start}\x1b[B\x1b[J\x1b[A` : start;
  };

  /** Redraws only the rows that changed, each from the first character that differs. */
  const changes = ({ live, caret: next }: Frame): string => {
    let at = caret.row;
    let out = "";
    const go = (row: number) => {
      if (row < at) out += `\x1b[${at - row}A`;
      if (row > at) out += `\x1b[${row - at}B`;
      at = row;
    };
    let count = 0;
    for (const [index, row] of live.entries()) {
      const old = drawn[index];
      if (old?.text === row.text) continue;
      count += 1;
      go(index);
      const same = old ? commonStart(old.text, row.text) : { length: 0, width: 0 };
      out += `${column(same.width)}${row.text.slice(same.length)}${old && old.width > row.width ? "\x1b[K" : ""}`;
    }
    if (out === "" && next.row === caret.row && next.column === caret.column) return "";
    go(next.row);
    out += column(next.column);
    return count > 1 ? `${BEGIN}${NO_WRAP}${out}${WRAP}${END}` : count === 1 ? `${NO_WRAP}${out}${WRAP}` : out;
  };

  const whole = ({ above, live, caret: next }: Frame): string => {
    const printed = above.map((line) => `${line}\r\n`).join("");
    const back = live.length - 1 - next.row;
    const rowsOf = live.map(({ text }) => text).join("\r\n");
    return `${BEGIN}${erase()}${printed}${NO_WRAP}${rowsOf}${WRAP}${back > 0 ? `\x1b[${back}A` : ""}${column(next.column)}${END}`;
  };

  return {
    draw(frame: Frame): void {
      const isSame = columns() === width && frame.above.length === 0 && frame.live.length === drawn.length;
      const bytes = isSame ? changes(frame) : whole(frame);
      if (bytes !== "") write(bytes);
      drawn = frame.live;
      caret = frame.caret;
      width = columns();
    },
    /** Erases the live region and leaves the caret at its start. */
    clear(): void {
      write(erase());
      drawn = [];
      caret = { row: 0, column: 0 };
      width = columns();
    },
  };
}
export type Screen = ReturnType<typeof createScreen>;

const column = (at: number) => `\x1b[${at + 1}G`;

/**
 * The prefix that two rows share and that need not be written again: printable ASCII only, since each such character is one
 * column wide.
 */
function commonStart(a: string, b: string): { length: number; width: number } {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a[length] === b[length] && a.charCodeAt(length) >= 0x20 && a.charCodeAt(length) < 0x7f) length += 1;
  // A combining mark that follows would join the last character, so that one is written again.
  if (length > 0 && length < Math.max(a.length, b.length)) length -= 1;
  return { length, width: length };
}
