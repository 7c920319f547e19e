import { terminalSafe } from "../lib/terminal-safe.ts";
import type { Event } from "../protocol/events.ts";
import type { Said } from "../protocol/runs.ts";
import { RunStory } from "../tui/run/story.ts";
import type { RunProgress } from "../tui/run/view.ts";
import { headOf } from "../tui/run/words.ts";
import { dim, type Line, paint } from "../tui/text/style.ts";

export interface ProgressDeps {
  write: (text: string) => void;
  colour: boolean;
  now?: () => number;
}

/** Prints a run in plain lines, for a log or a pipe: one for everything that has ended. */
export function createProgress({ write, colour, now = Date.now }: ProgressDeps): RunProgress {
  const story = new RunStory(now);
  const unfinished = new Map<string, Said>();
  let speaking = "";
  const line = (spans: Line) => write(`${paint(spans, { colour, links: false })}\n`);
  const tell = (...lines: Line[]) => {
    if (lines.length > 0) speaking = "";
    lines.forEach(line);
  };
  const quote = (said: Said) => {
    if (speaking !== said.key) line(headOf(said));
    speaking = said.key;
    line([dim("│"), { text: ` ${said.text}` }]);
  };
  const finishSaying = (key: string) => {
    const rest = unfinished.get(key);
    unfinished.delete(key);
    if (rest?.text) quote(rest);
  };

  return {
    hear(event: Event): void {
      if (event.type === "step.finished") finishSaying(event.data.key);
      tell(...story.hear(event));
    },
    note: (text: string) => tell([{ text: terminalSafe(text) }]),
    /** Prints whole lines as they arrive, and the last one when its call ends; names the speaker when it changes. */
    say(said: Said): void {
      const lines = `${unfinished.get(said.key)?.text ?? ""}${terminalSafe(said.text)}`.split("\n");
      const rest = lines.pop() ?? "";
      for (const text of lines) quote({ ...said, text });
      unfinished.set(said.key, { ...said, text: rest });
    },
    end(): void {
      for (const key of [...unfinished.keys()]) finishSaying(key);
    },
  };
}
