import { isUnfinished, TODO_MARKS, type TodoItem } from "../../protocol/todo.ts";
import { coloured, dim, type Line } from "../text/style.ts";
import { safe } from "../transcript/blocks.ts";
import { seconds, spinner } from "../transcript/tools.ts";
import type { Turn, Waiting } from "../transcript/transcript.ts";

export interface ActivityDeps {
  turn: Turn | undefined;
  waiting: readonly Waiting[];
  /** Typed texts whose arrival the daemon has not confirmed yet. */
  sending: readonly string[];
  now: number;
  /** The ID of the work that has asked the user something and waits for the answer. */
  asking?: string | undefined;
  /** The model's list of steps. */
  todo: readonly TodoItem[];
}

const SILENCE_MS = 5_000;
const MOST = 5;

/** The queued messages, and a spinner while something is running. */
export function activityLines({ turn, waiting, sending, now, asking, todo }: ActivityDeps): Line[] {
  const queued = waiting.slice(0, MOST).map(({ text, source }): Line => {
    const from = source === "tui" ? "" : `[${source}] `;
    return [dim(`  queued  ${from}${firstLine(text)}`)];
  });
  const more = waiting.length - queued.length;
  const lines = [
    ...todoLines(todo),
    ...sending.map((text): Line => [dim(`› ${firstLine(text)}`)]),
    ...queued,
    ...(more > 0 ? [[dim(`  and ${more} more`)]] : []),
  ];
  if (!turn) return sending.length > 0 ? [...lines, [coloured(spinner(now), "cyan"), dim(" sending")]] : lines;
  const silent = now - turn.heardAt;
  const isSilent = silent >= SILENCE_MS && asking !== turn.id;
  const silence = isSilent ? ` · silent for ${Math.floor(silent / 1_000)} s` : asking === turn.id ? " · waits for you" : "";
  const working = `${seconds(Math.floor((now - turn.startedAt) / 1_000) * 1_000).replace(".0", "")}`;
  return [...lines, [coloured(spinner(now), "cyan"), dim(` working ${working}${silence} · Esc stops`)]];
}

/** How many characters of a message are shown. Screens are narrower than this, and the line is redrawn with every frame. */
const MOST_SHOWN = 1_000;

function firstLine(text: string): string {
  const whole = text.trim();
  const end = whole.indexOf("\n");
  const first = safe((end < 0 ? whole : whole.slice(0, end)).slice(0, MOST_SHOWN));
  return end < 0 ? first : `${first} … (${linesIn(whole)} lines)`;
}

function linesIn(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

const MOST_STEPS = 6;

/** The steps around the current one; empty if all are done. */
function todoLines(todo: readonly TodoItem[]): Line[] {
  if (!isUnfinished(todo)) return [];
  const next = todo.findIndex(({ state }) => state !== "done");
  const start = Math.max(0, Math.min(next - 1, todo.length - MOST_STEPS));
  const shown = todo.slice(start, start + MOST_STEPS).map(({ text, state }): Line => {
    const words = `  ${TODO_MARKS[state]} ${firstLine(text)}`;
    return [state === "running" ? coloured(words, "cyan") : dim(words)];
  });
  const done = todo.filter(({ state }) => state === "done").length;
  return todo.length > MOST_STEPS ? [...shown, [dim(`  ${done} of ${todo.length} steps done`)]] : shown;
}
