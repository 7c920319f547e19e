import { isUnfinished, TODO_MARKS, type TodoItem } from "../../protocol/todo.ts";
import { coloured, dim, type Line } from "../text/style.ts";
import { safe } from "../transcript/blocks.ts";
import { seconds, spinner } from "../transcript/tools.ts";
import type { Turn, Waiting } from "../transcript/transcript.ts";

export interface ActivityDeps {
  turn: Turn | undefined;
  waiting: readonly Waiting[];
  /** What was typed and has not been heard of by the daemon yet. */
  sending: readonly string[];
  now: number;
  /** Who asks the person something and waits for the answer. */
  asking?: string | undefined;
  /** The steps that the model keeps. */
  todo: readonly TodoItem[];
}

const SILENCE_MS = 5_000;
const MOST = 5;

/** What waits, and a sign that something goes on. */
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
  const silence = isSilent
    ? ` · silent for ${Math.floor(silent / 1_000)} s`
    : asking === turn.id
      ? " · waits for your answer"
      : "";
  const working = `${seconds(Math.floor((now - turn.startedAt) / 1_000) * 1_000).replace(".0", "")}`;
  return [...lines, [coloured(spinner(now), "cyan"), dim(` working ${working}${silence} · Esc stops`)]];
}

function firstLine(text: string): string {
  const [first = "", ...others] = safe(text.trim()).split("\n");
  return others.length > 0 ? `${first} … (${others.length + 1} lines)` : first;
}

const MOST_STEPS = 6;

/** The steps around the one under way; nothing where all are done. */
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
