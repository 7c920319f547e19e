import { expect, onTestFinished, test, vi } from "vitest";
import { createProgress } from "../../src/cli/progress.ts";
import { type EventData, newsOf, type RunEventType } from "../../src/protocol/events.ts";
import { noUsage } from "../../src/protocol/usage.ts";

function watch(more: Partial<Parameters<typeof createProgress>[0]> = {}) {
  let shown = "";
  const progress = createProgress({ write: (text) => (shown += text), live: false, colour: false, now: () => 0, ...more });
  const hear = <T extends RunEventType>(type: T, data: Partial<EventData<T>>) =>
    progress.hear({ id: 1, ...newsOf(type, { runId: "r_1", ...data } as EventData<T>) });
  const finished = (key: string) => hear("step.finished", { key, state: "done", usage: noUsage(), verdict: null, error: null });
  return { progress, hear, finished, shown: () => shown };
}

test("what agents say at the same time is shown in whole lines, and who speaks is named where it changes", () => {
  const { progress, finished, shown } = watch();
  const say = (stream: number, ...pieces: string[]) => {
    for (const text of pieces) progress.say({ key: `stream-${stream}`, agent: "engineer", stream, text });
  };
  say(1, "I wr", "ite the", " parser.\nThen");
  say(2, "I test.", "\n");
  say(1, " I stop.");
  finished("stream-1");
  say(2, "All \u001b[2Jis well.");
  progress.end();
  expect(shown().split("\n")).toEqual([
    "┌ engineer, stream 1",
    "│ I write the parser.",
    "┌ engineer, stream 2",
    "│ I test.",
    "┌ engineer, stream 1",
    "│ Then I stop.",
    "  ✓ stream-1 0.0 s",
    "┌ engineer, stream 2",
    "│ All �[2Jis well.",
    "",
  ]);
});

/** What a terminal shows after it was sent this. */
function screenOf(text: string): string[] {
  const lines = [""];
  let row = 0;
  let column = 0;
  for (const [part] of text.replaceAll("\x1b", "␛").matchAll(/␛\[\d*[AJ]|\r|\n|[^␛\r\n]+/g)) {
    const up = /^␛\[(\d+)A$/.exec(part);
    if (up) row -= Number(up[1]);
    else if (part === "␛[J") lines.splice(row, lines.length, lines[row]!.slice(0, column));
    else if (part === "\r") column = 0;
    else if (part === "\n") {
      row += 1;
      column = 0;
      lines[row] ??= "";
    } else {
      lines[row] = lines[row]!.slice(0, column) + part + lines[row]!.slice(column + part.length);
      column += part.length;
    }
    expect(row, "the cursor stays on the screen").toBeGreaterThanOrEqual(0);
  }
  return lines;
}

test("on a terminal each step under way has a line, never longer than the terminal is wide, below what has ended", () => {
  let at = 0;
  const { progress, hear, finished, shown } = watch({ live: true, columns: () => 30, now: () => at });
  for (const stream of [1, 2, 3, 4]) hear("step.started", { key: `implement/stream-${stream}/review:eng-code-reviewer` });
  hear("phase.started", { name: "implement" });
  at = 2_000;
  hear("step.started", { key: "short" });
  expect(screenOf(shown())).toEqual([
    "▸ implement",
    "2.0 s · 0 tokens",
    "  implement/stream-1/review:…",
    "  implement/stream-2/review:…",
    "  implement/stream-3/review:…",
    "  implement/stream-4/review:…",
    "  short 0.0 s",
  ]);
  for (const line of screenOf(shown())) expect(line.length).toBeLessThan(30);
  finished("implement/stream-2/review:eng-code-reviewer");
  expect(screenOf(shown()).slice(0, 4)).toEqual([
    "▸ implement",
    "  ✓ implement/stream-2/review:eng-code-reviewer 2.0 s",
    "2.0 s · 0 tokens",
    "  implement/stream-1/review:…",
  ]);
  progress.end();
  expect(screenOf(shown())).toEqual(["▸ implement", "  ✓ implement/stream-2/review:eng-code-reviewer 2.0 s", ""]);
});

test("at most eight steps have a line, fewer on a low terminal, and the rest are counted", () => {
  let rows = 24;
  const { progress, hear, shown } = watch({ live: true, rows: () => rows });
  for (let number = 1; number <= 11; number += 1) hear("step.started", { key: `step-${number}` });
  expect(screenOf(shown()).slice(-2)).toEqual(["  step-8 0.0 s", "  and 3 more"]);
  rows = 6;
  hear("step.started", { key: "step-12" });
  expect(screenOf(shown())).toEqual(["0.0 s · 0 tokens", "  step-1 0.0 s", "  step-2 0.0 s", "  step-3 0.0 s", "  and 9 more"]);
  progress.end();
});

test("lines that a narrower terminal has broken are taken away whole", () => {
  let columns = 40;
  const { progress, hear, shown } = watch({ live: true, columns: () => columns });
  hear("step.started", { key: "implement/stream-1/draft-of-it" });
  columns = 20;
  const before = shown().length;
  hear("step.started", { key: "b" });
  expect(shown().slice(before), "one line for the head, two for what was one").toContain("\r\x1b[2A\x1b[J");
  progress.end();
});

test("nothing is drawn before the run is heard of, so that what is said first stays whole", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { progress, hear, shown } = watch({ live: true });
  vi.advanceTimersByTime(2_000);
  expect(shown()).toBe("");
  hear("run.started", { models: [] });
  vi.advanceTimersByTime(2_000);
  expect(screenOf(shown())).toEqual(["run r_1", "0.0 s · 0 tokens"]);
  progress.end();
  expect(screenOf(shown())).toEqual(["run r_1", ""]);
});
