import { withoutEnd } from "../../lib/trim.ts";
import type { FileEdit } from "../../protocol/messages.ts";
import { type CallState, callEnding, type Stateful, showState } from "../../protocol/shown-state.ts";
import { coloured, dim, type Line, type Span } from "../text/style.ts";
import { clip } from "../text/wrap.ts";
import { safe } from "./blocks.ts";
import { editLines } from "./edit-lines.ts";

/** A tool call as the screen shows it. */
export interface ToolCall {
  message: string;
  tool: string;
  /** How many earlier calls of this tool the message had. */
  ordinal: number;
  state: CallState;
  /** The exit code of a command that has ended. */
  exitCode?: number | null | undefined;
  startedAt: number;
  endedAt?: number;
  /** Missing in events from an older version. */
  callId?: string | undefined;
  /** The call's subject, such as the command, the path or the question. */
  what?: string | undefined;
  /** The end of its output. */
  output?: string;
  /** The effect of an edit on a file. */
  diff?: FileEdit | undefined;
  /** The result, shown below the call if the user asks for it. */
  result?: string;
}

/** A call as recorded in the daemon's journal. */
export interface JournalCall {
  tool: string;
  args: string;
  state: string;
  result: string | null;
  durationMs: number | null;
}

const COLOURS = { good: "green", bad: "red", doubt: "yellow", busy: "yellow", asks: "magenta", idle: undefined } as const;

/** The mark of a state in its colour. */
export function markOf(of: Stateful): Span {
  const { mark, tone } = showState(of);
  const colour = COLOURS[tone];
  return colour === undefined ? dim(mark) : coloured(mark, colour);
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
export const spinner = (now: number): string => SPINNER[Math.floor(now / 120) % SPINNER.length]!;

export function seconds(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1_000) % 60} s`;
}

/** The line of a call: its subject, its state and its duration. */
export function toolLines(call: ToolCall, width: number, now: number): Line[] {
  const { tool, what = "", state, exitCode, startedAt, endedAt } = call;
  const { tone } = showState({ kind: "call", state, exitCode });
  const sign: Span = tone === "busy" ? coloured(spinner(now), "yellow") : markOf({ kind: "call", state, exitCode });
  const time = seconds((endedAt ?? now) - startedAt);
  const ending = callEnding(state, exitCode);
  const tail = `${ending === "" ? "" : `  ${ending}`}  ${time}`;
  const name = tool === "shell" && what !== "" ? "$" : tool;
  const words: Line = [
    { text: name, style: { dim: true, bold: true } },
    dim(what === "" ? "" : `${name === "$" ? " " : "  "}${safe(what)}`),
  ];
  const line: Line = [{ text: "  " }, sign, { text: " " }, ...clip(words, Math.max(8, width - 5 - tail.length)), dim(tail)];
  if (call.result !== undefined) return [line, ...resultLines(call.result)];
  if (call.diff !== undefined && tone === "good") return [line, ...editLines(call.diff, width)];
  // The last lines of output are shown while the call is running, and stay if it did not go well.
  return tone === "good" || call.output === undefined ? [line] : [line, ...lastLines(call.output, width)];
}

const MOST_LINES = 5;

function lastLines(output: string, width: number): Line[] {
  const lines = withoutEnd(safe(output.replace(/\r(?!\n)/g, "\n")), "\n")
    .split("\n")
    .slice(-MOST_LINES);
  return lines.map((text) => clip([dim(`    ${text}`)], width));
}

export function resultLines(result: string): Line[] {
  return withoutEnd(safe(result), "\n")
    .split("\n")
    .map((text) => [dim(`    ${text}`)]);
}
