import type { Event } from "../protocol/events.ts";
import type { RunStep, RunStream } from "../protocol/runs.ts";

export interface ProgressParts {
  write: (text: string) => void;
  /** A terminal gets a line that is drawn again and again; anything else gets plain lines. */
  live: boolean;
  colour: boolean;
  now?: () => number;
}

/** Shows a run as it goes: a line for each thing that ended, and on a terminal what is under way. */
export function createProgress({ write, live, colour, now = Date.now }: ProgressParts) {
  const began = now();
  const working = new Map<string, number>();
  let tokens = 0;
  let shown = false;
  const dim = (text: string) => (colour ? `\x1b[2m${text}\x1b[0m` : text);
  const bold = (text: string) => (colour ? `\x1b[1m${text}\x1b[0m` : text);

  const clear = () => {
    if (shown) write("\r\x1b[K");
    shown = false;
  };
  const draw = () => {
    if (!live) return;
    clear();
    const at = [...working].map(([key, since]) => `${key} ${seconds(now() - since)}`).join(" · ");
    write(dim(`${seconds(now() - began)} · ${tokens.toLocaleString("en")} tokens · ${at || "…"}`).slice(0, 200));
    shown = true;
  };
  const line = (text: string) => {
    clear();
    write(`${text}\n`);
    draw();
  };
  const ticking = live ? setInterval(draw, 500) : undefined;
  ticking?.unref();

  return {
    hear({ type, data }: Event): void {
      if (type === "run.started") line(`${bold("run")} ${String(data.runId)}`);
      if (type === "phase.started") line(bold(`▸ ${String(data.name)}`));
      if (type === "stream.started") {
        const { number, task } = data as unknown as RunStream;
        line(`  stream ${number}: ${(task.split("\n", 1)[0] ?? "").slice(0, 100)}`);
      }
      if (type === "stream.finished") {
        const { number, status, reason } = data as unknown as RunStream;
        line(`  stream ${number} ${status}${reason ? `: ${reason}` : ""}`);
      }
      if (type === "step.started") {
        working.set(String(data.key), now());
        draw();
      }
      if (type === "step.finished") {
        const step = data as unknown as RunStep;
        const since = working.get(step.key) ?? now();
        working.delete(step.key);
        tokens += step.usage.inputTokens + step.usage.outputTokens;
        const verdict = step.verdict ? ` ${step.verdict}` : "";
        const trouble = step.error ? ` ${step.error}` : "";
        line(`  ${step.state === "failed" ? "✗" : "✓"} ${step.key}${verdict}${trouble} ${dim(seconds(now() - since))}`);
      }
    },
    say(agent: string, text: string): void {
      line(
        `${dim(`┌ ${agent}`)}\n${text
          .trim()
          .split("\n")
          .map((each) => `${dim("│")} ${each}`)
          .join("\n")}`,
      );
    },
    end(): void {
      clearInterval(ticking);
      clear();
    },
  };
}

function seconds(ms: number): string {
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round(ms / 1000) % 60} s`;
}
