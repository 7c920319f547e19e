import { terminalSafe } from "../../lib/terminal-safe.ts";
import type { Event } from "../../protocol/events.ts";
import type { RunStep } from "../../protocol/runs.ts";
import { formatRetry } from "../../protocol/shown-state.ts";
import { shortNumber } from "../screen/status-line.ts";
import { bold, coloured, dim, type Line, lineWidth } from "../text/style.ts";
import { clip } from "../text/wrap.ts";
import { markOf, seconds, spinner } from "../transcript/tools.ts";

/** A step in progress. */
interface Working {
  since: number;
  phase: string;
  stream: number | null;
}

/** How many steps in progress get a line of their own. */
const MOST_STEPS = 8;

/** A run as text: one line for everything that has ended, and below them the steps in progress. */
export class RunStory {
  readonly #now: () => number;
  readonly #began: number;
  readonly #working = new Map<string, Working>();
  /** The first line of each stream's task. */
  readonly #tasks = new Map<number, string>();
  #phase = "";
  #tokens = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#began = now();
  }

  /** The lines that this event completes, each returned once. */
  hear(event: Event): Line[] {
    switch (event.type) {
      case "run.started":
        return [[bold("run"), { text: ` ${event.data.runId}` }]];
      case "phase.started":
        this.#phase = event.data.name;
        return [[bold(`▸ ${oneLine(event.data.name)}`)]];
      case "phase.finished": {
        const { name, status, reason } = event.data;
        if (status === "done") return [];
        return [[bold(`▸ ${oneLine(name)} `), markOf({ kind: "phase", status }), { text: ` ${status}${why(reason)}` }]];
      }
      case "stream.started": {
        const { number, task } = event.data;
        const first = oneLine(task.split("\n", 1)[0] ?? "").slice(0, 100);
        this.#tasks.set(number, first);
        return [[{ text: `  stream ${number}: ${first}` }]];
      }
      case "stream.finished": {
        const { number, status, reason } = event.data;
        return [[{ text: "  " }, markOf({ kind: "stream", status }), { text: ` stream ${number} ${status}${why(reason)}` }]];
      }
      case "step.started": {
        const { key, phase = "", stream = null } = event.data;
        this.#working.set(key, { since: this.#now(), phase, stream });
        return [];
      }
      case "step.retried":
        return [
          [{ text: "  " }, coloured("!", "yellow"), { text: ` ${oneLine(event.data.key)} ${oneLine(formatRetry(event.data))}` }],
        ];
      case "step.finished":
        return [this.#finished(event.data)];
      default:
        return [];
    }
  }

  /** The steps in progress, in at most `room` lines. */
  live(width: number, room: number): Line[] {
    const steps = [...this.#working].map(([key, step]) => this.#step(key, step, width));
    const shown = Math.max(0, Math.min(MOST_STEPS, room - 2));
    const rest = steps.length - shown;
    const more: Line[] = rest > 0 ? [[dim(`  and ${rest} more`)]] : [];
    const head = [this.#phase, seconds(this.#now() - this.#began), `${shortNumber(this.#tokens)} tokens`].filter(Boolean);
    const status = [coloured(spinner(this.#now()), "cyan"), dim(` ${head.join(" · ")} · Ctrl-C stops`)];
    return [...steps.slice(0, shown), ...more, status].map((line) => clip(line, width));
  }

  #step(key: string, { since, phase, stream }: Working, width: number): Line {
    const time = `  ${seconds(this.#now() - since)}`;
    const own = withoutStart(withoutStart(key, `${phase}/`), `stream-${stream}/`);
    const task = stream === null ? "" : `stream ${stream}  `;
    const about = stream === null ? "" : `  ${this.#tasks.get(stream) ?? ""}`;
    const sign: Line = [{ text: "  " }, coloured(spinner(this.#now()), "yellow"), { text: " " }];
    const words: Line = [dim(`${task}${oneLine(own)}`), dim(about)];
    return [...sign, ...clip(words, Math.max(8, width - lineWidth(sign) - time.length)), dim(time)];
  }

  #finished(step: RunStep): Line {
    const since = this.#working.get(step.key)?.since ?? this.#now();
    this.#working.delete(step.key);
    this.#tokens += step.usage.inputTokens + step.usage.outputTokens;
    const sign = markOf({ kind: "step", step });
    const verdict = step.verdict ? ` ${oneLine(step.verdict)}` : "";
    const trouble = step.error ? ` ${oneLine(step.error)}` : "";
    const model = step.model ? `${oneLine(step.model)} ` : "";
    const time = seconds(this.#now() - since);
    return [{ text: "  " }, sign, { text: ` ${oneLine(step.key)}${verdict}${trouble} ` }, dim(`${model}${time}`)];
  }
}

const why = (reason: string | null) => (reason ? `: ${oneLine(reason)}` : "");
const oneLine = (text: string) => terminalSafe(text).replace(/\s/g, " ");
const withoutStart = (text: string, start: string) => (text.startsWith(start) ? text.slice(start.length) : text);
