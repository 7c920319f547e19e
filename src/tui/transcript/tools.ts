import { withoutEnd } from "../../lib/trim.ts";
import { coloured, dim, type Line, type Span } from "../text/style.ts";
import { clip } from "../text/wrap.ts";
import { safe } from "./blocks.ts";

/** One call of a tool, as the screen shows it. */
export interface ToolCall {
  message: string;
  tool: string;
  /** How many calls of this tool the message had before. */
  ordinal: number;
  state: "started" | "done" | "failed";
  startedAt: number;
  endedAt?: number;
  /** The command, the path, the question. */
  what?: string;
  /** Shown below the call once it is asked for. */
  result?: string;
}

/** A call as the daemon's journal tells it. */
export interface JournalCall {
  tool: string;
  args: string;
  state: string;
  result: string | null;
  durationMs: number | null;
}

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
export const spinner = (now: number): string => SPINNER[Math.floor(now / 120) % SPINNER.length]!;

export function seconds(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1_000) % 60} s`;
}

/** The quiet line of a call: what is done, whether it went well, how long it took. */
export function toolLines(call: ToolCall, width: number, now: number): Line[] {
  const { tool, what = "", state, startedAt, endedAt } = call;
  const sign: Span =
    state === "started" ? coloured(spinner(now), "yellow") : state === "done" ? coloured("✓", "green") : coloured("✗", "red");
  const time = seconds((endedAt ?? now) - startedAt);
  const tail = `  ${time}`;
  const words: Line = [{ text: tool, style: { dim: true, bold: true } }, dim(what === "" ? "" : `  ${safe(what)}`)];
  const line: Line = [{ text: "  " }, sign, { text: " " }, ...clip(words, Math.max(8, width - 5 - tail.length)), dim(tail)];
  return call.result === undefined ? [line] : [line, ...resultLines(call.result)];
}

export function resultLines(result: string): Line[] {
  return withoutEnd(safe(result), "\n")
    .split("\n")
    .map((text) => [dim(`    ${text}`)]);
}

/** What a call is about, in a line: its command, path or question. */
export function whatOf({ tool, args }: Pick<JournalCall, "tool" | "args">): string {
  const given = recordIn(args);
  if (!given) return oneLine(args);
  const text = (name: string) => (typeof given[name] === "string" ? given[name] : "");
  switch (tool) {
    case "shell":
      return oneLine(text("command"));
    case "file_ops":
      return oneLine(`${text("operation")} ${text("path")}`);
    case "github":
      return oneLine(
        `${text("action")} ${text("repo")} ${given.number === undefined ? text("title") : `#${String(given.number)}`}`,
      );
    default:
      return oneLine(
        Object.values(given)
          .filter((value) => typeof value === "string" || typeof value === "number")
          .map(String)
          .join(" · "),
      );
  }
}

function recordIn(args: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(args);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Arguments that were shortened are no whole JSON any more.
    return undefined;
  }
}

const oneLine = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, 400);
