import { terminalSafe } from "../lib/terminal-safe.ts";
import type { Event } from "../protocol/events.ts";
import type { Said } from "../protocol/runs.ts";
import { standIns } from "../swarm/run/served.ts";

export interface ProgressDeps {
  write: (text: string) => void;
  /** Redraw lines in place, as on a terminal; otherwise only plain lines are written. */
  live: boolean;
  colour: boolean;
  /** How many characters fit on a line of the terminal. */
  columns?: () => number;
  /** How many lines the terminal has. */
  rows?: () => number;
  now?: () => number;
}

/** How many steps under way get a line of their own. */
const MOST_LINES = 8;

/** Shows a run as it goes: a line for everything that has ended and, on a terminal, below them one for everything under way. */
export function createProgress({ write, live, colour, columns = () => 80, rows = () => 24, now = Date.now }: ProgressDeps) {
  const began = now();
  const working = new Map<string, number>();
  const unfinished = new Map<string, Said>();
  let speaking = "";
  let tokens = 0;
  let drawn: readonly string[] = [];
  const dim = (text: string) => (colour ? `\x1b[2m${text}\x1b[0m` : text);
  const bold = (text: string) => (colour ? `\x1b[1m${text}\x1b[0m` : text);

  /** Erases the lines drawn before; a terminal that has become narrower has wrapped them. */
  const cleared = () => {
    const height = drawn.reduce((sum, text) => sum + Math.max(1, Math.ceil(text.length / columns())), 0);
    drawn = [];
    return height === 0 ? "" : `\r${height > 1 ? `\x1b[${height - 1}A` : ""}\x1b[J`;
  };
  const underWay = (): string[] => {
    const room = Math.max(1, Math.min(MOST_LINES, rows() - 3));
    const steps = [...working].map(([key, since]) => `  ${key} ${seconds(now() - since)}`);
    const rest = steps.length - room;
    const head = `${seconds(now() - began)} · ${tokens.toLocaleString("en")} tokens`;
    return [head, ...steps.slice(0, room), ...(rest > 0 ? [`  and ${rest} more`] : [])];
  };
  const draw = (above = "") => {
    const before = cleared();
    drawn = live ? underWay().map((text) => fitting(text, columns() - 1)) : [];
    const text = `${before}${above}${drawn.map(dim).join("\n")}`;
    if (text !== "") write(text);
  };
  const line = (text: string) => draw(`${text}\n`);
  const tell = (text: string) => {
    speaking = "";
    line(text);
  };
  const quote = ({ key, agent, stream, text }: Said) => {
    if (speaking !== key) line(dim(`┌ ${agent}${stream === null ? "" : `, stream ${stream}`}`));
    speaking = key;
    line(`${dim("│")} ${text}`);
  };
  const finishSaying = (key: string) => {
    const rest = unfinished.get(key);
    unfinished.delete(key);
    if (rest?.text) quote(rest);
  };
  let ticking: NodeJS.Timeout | undefined;

  return {
    hear(event: Event): void {
      if (live) ticking ??= setInterval(() => draw(), 500).unref();
      if (event.type === "run.started") {
        tell(`${bold("run")} ${event.data.runId}`);
        for (const each of standIns(event.data.models)) tell(terminalSafe(each));
      }
      if (event.type === "phase.started") tell(bold(`▸ ${event.data.name}`));
      if (event.type === "phase.finished") {
        const { name, status, reason } = event.data;
        if (status === "skipped") tell(`${bold(`▸ ${name}`)} skipped${reason ? `: ${terminalSafe(reason)}` : ""}`);
      }
      if (event.type === "stream.started") {
        const { number, task } = event.data;
        tell(`  stream ${number}: ${terminalSafe(task.split("\n", 1)[0] ?? "").slice(0, 100)}`);
      }
      if (event.type === "stream.finished") {
        const { number, status, reason } = event.data;
        tell(`  stream ${number} ${status}${reason ? `: ${terminalSafe(reason)}` : ""}`);
      }
      if (event.type === "step.started") {
        working.set(event.data.key, now());
        draw();
      }
      if (event.type === "step.finished") {
        const step = event.data;
        const since = working.get(step.key) ?? now();
        working.delete(step.key);
        tokens += step.usage.inputTokens + step.usage.outputTokens;
        finishSaying(step.key);
        const verdict = step.verdict ? ` ${step.verdict}` : "";
        const trouble = step.error ? ` ${terminalSafe(step.error)}` : "";
        const model = step.model ? `${terminalSafe(step.model)} ` : "";
        tell(
          `  ${step.state === "failed" ? "✗" : "✓"} ${step.key}${verdict}${trouble} ${dim(`${model}${seconds(now() - since)}`)}`,
        );
      }
    },
    note: (text: string) => tell(terminalSafe(text)),
    /** Shows whole lines as they come, and the last one when its call ends; names the speaker when it changes. */
    say(said: Said): void {
      const lines = `${unfinished.get(said.key)?.text ?? ""}${terminalSafe(said.text)}`.split("\n");
      const rest = lines.pop() ?? "";
      for (const text of lines) quote({ ...said, text });
      unfinished.set(said.key, { ...said, text: rest });
    },
    end(): void {
      for (const key of [...unfinished.keys()]) finishSaying(key);
      clearInterval(ticking);
      if (drawn.length > 0) write(cleared());
    },
  };
}

function fitting(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

function seconds(ms: number): string {
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round(ms / 1000) % 60} s`;
}
