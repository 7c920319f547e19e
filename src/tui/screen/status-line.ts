import type { Mode } from "../../home/mode-words.ts";
import { coloured, dim, type Line, lineWidth, type Span } from "../text/style.ts";
import { safe } from "../transcript/blocks.ts";

/** The contents of the status line. */
export interface StatusFacts {
  connection: "connecting" | "connected" | "reconnecting";
  engine?: { kind: string; model: string; state: string };
  /** Empty until it is known. */
  conversation: string;
  mode?: Mode;
  /** The number of waiting messages. */
  queue: number;
  tasks: number;
  runs: number;
  approvals: number;
  isDiskFull?: boolean;
  tokens: number;
  /** The use of the model's context window at the last answer. */
  context?: { total: number; window: number } | null;
}

/**
 * Engine and model, connection, queue, running work and tokens. On a narrow screen, the least important parts are dropped
 * first.
 */
export function statusLine(facts: StatusFacts, width: number): Line {
  const { connection, engine, conversation, mode, queue, tasks, runs, approvals, isDiskFull, tokens, context } = facts;
  const parts: { span: Span; worth: number }[] = [];
  const add = (worth: number, span: Span) => void parts.push({ span, worth });
  if (engine) {
    const state = engine.state === "ready" ? "" : ` (${engine.state})`;
    const model = engine.model === engine.kind ? "" : ` ${safe(engine.model)}`;
    add(8, dim(`${engine.kind}${model}${state}`));
  }
  add(9, connection === "connected" ? coloured("connected", "green") : coloured(connection, "yellow"));
  if (conversation !== "main" && conversation !== "") add(5, { text: conversation, style: { colour: "cyan" } });
  if (mode) add(8, mode === "full" ? coloured(mode, "yellow") : dim(mode));
  if (approvals > 0) add(10, coloured(`${approvals} ${approvals === 1 ? "waits" : "wait"} for you`, "yellow"));
  if (isDiskFull) add(10, coloured("disk full", "red"));
  add(queue > 0 ? 7 : 2, dim(`queue ${queue}`));
  if (tasks > 0) add(6, dim(counted(tasks, "task")));
  if (runs > 0) add(6, dim(counted(runs, "run")));
  if (context && context.window > 0) {
    const percent = Math.round((context.total / context.window) * 100);
    if (percent >= 80) add(6, coloured(`context ${percent} %`, "yellow"));
    else add(2, dim(`context ${percent} %`));
  }
  add(3, dim(`${shortNumber(tokens)} tokens`));
  const assemble = () => parts.flatMap(({ span }, index) => (index === 0 ? [span] : [dim(" · "), span]));
  while (parts.length > 1 && lineWidth(assemble()) > width) {
    const least = Math.min(...parts.map(({ worth }) => worth));
    parts.splice(
      parts.findIndex(({ worth }) => worth === least),
      1,
    );
  }
  return assemble();
}

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export function shortNumber(value: number): string {
  if (value < 10_000) return String(value);
  return value < 1_000_000 ? `${(value / 1_000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`;
}
