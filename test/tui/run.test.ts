import { expect, test } from "vitest";
import { type EventData, newsOf, type RunEventType } from "../../src/protocol/events.ts";
import { noUsage } from "../../src/protocol/usage.ts";
import { RunStory } from "../../src/tui/run/story.ts";
import { RunWords } from "../../src/tui/run/words.ts";
import { lineText, lineWidth } from "../../src/tui/text/style.ts";

function watch() {
  let clock = 0;
  const story = new RunStory(() => clock);
  const hear = <T extends RunEventType>(type: T, data: Partial<EventData<T>>) =>
    story.hear({ id: 1, ...newsOf(type, { runId: "r_1", ...data } as EventData<T>) }).map(lineText);
  return {
    hear,
    begin: (key: string, stream: number | null = null) => hear("step.started", { key, phase: "implement", stream }),
    wait: (ms: number) => {
      clock += ms;
    },
    live: (width = 80, room = 24) => story.live(width, room).map(lineText),
    widths: (width: number) => story.live(width, 24).map(lineWidth),
  };
}

test("each step under way has a line of its stream, its work and its time, none wider than the terminal", () => {
  const run = watch();
  expect(run.hear("phase.started", { name: "implement" })).toEqual(["▸ implement"]);
  expect(run.hear("stream.started", { number: 1, task: "T1 The parser\nwith more" })).toEqual(["  stream 1: T1 The parser"]);
  run.begin("implement/stream-1/review:eng-code-reviewer", 1);
  run.wait(2_000);
  run.begin("baseline");
  expect(run.live()).toEqual([
    expect.stringMatching(/^ {2}\S stream 1 {2}review:eng-code-reviewer {2}T1 The parser {2}2\.0 s$/),
    expect.stringMatching(/^ {2}\S baseline {2}0\.0 s$/),
    expect.stringMatching(/^\S implement · 2\.0 s · 0 tokens · Ctrl-C stops$/),
  ]);
  expect(Math.max(...run.widths(30))).toBeLessThanOrEqual(30);
  expect(run.live(30)[0]).toMatch(/… {2}2\.0 s$/);
  const usage = { ...noUsage(), inputTokens: 12_000, outputTokens: 345 };
  const ended = { key: "baseline", state: "failed" as const, verdict: null, error: "it\u001b[2J broke", model: "m", usage };
  expect(run.hear("step.finished", ended)).toEqual(["  ✗ baseline it�[2J broke m 0.0 s"]);
  expect(run.live()).toHaveLength(2);
  expect(run.live()[1]).toContain("12.3k tokens");
});

test("at most eight steps have a line, fewer on a low terminal, and the rest are counted", () => {
  const run = watch();
  for (let number = 1; number <= 11; number += 1) run.begin(`step-${number}`);
  expect(run.live()).toHaveLength(10);
  expect(run.live().at(-2)).toBe("  and 3 more");
  expect(run.live(80, 4)).toHaveLength(4);
  expect(run.live(80, 4).at(-2)).toBe("  and 9 more");
});

test("what agents say side by side is drawn as markdown, in whole lines, under the name of whoever speaks", () => {
  const words = new RunWords(false);
  const said: string[] = [];
  const say = (stream: number, text: string) =>
    said.push(...words.hear({ key: `s${stream}`, agent: "engineer", stream, text }, 80).map(lineText));
  say(1, "# Plan\n\nI **wri");
  expect(words.live(80).map(lineText)).toEqual(["│ ", "│ I wri"]);
  say(2, "I \u001b[2Jtest.\n\n");
  say(1, "te** it.\n\n");
  words.interrupt();
  say(1, "The e");
  said.push(...words.end("s1", 80).map(lineText), ...words.endAll(80).map(lineText));
  expect(said.filter((line) => line.trim() !== "│")).toEqual([
    "┌ engineer, stream 1",
    "│ Plan",
    "┌ engineer, stream 2",
    "│ I �[2Jtest.",
    "┌ engineer, stream 1",
    "│ I write it.",
    "┌ engineer, stream 1",
    "│ The e",
  ]);
});
