import { expect, test } from "vitest";
import { createProgress } from "../../src/cli/progress.ts";
import type { Event } from "../../src/protocol/events.ts";
import { noUsage } from "../../src/protocol/usage.ts";

function watch(more: Partial<Parameters<typeof createProgress>[0]> = {}) {
  let shown = "";
  const progress = createProgress({ write: (text) => (shown += text), live: false, colour: false, now: () => 0, ...more });
  const hear = (type: Event["type"], data: Record<string, unknown>) => progress.hear({ id: 1, type, at: "", data } as Event);
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

test("on a terminal one line tells what is under way, never longer than the terminal is wide", () => {
  const { progress, hear, shown } = watch({ live: true, columns: () => 40 });
  hear("step.started", { key: "implement/stream-1/draft" });
  hear("step.started", { key: "implement/stream-2/draft" });
  progress.end();
  const lines = shown().split("\r\x1b[K");
  expect(lines[0]).toContain("implement/stream-1");
  for (const line of lines) expect(line.length).toBeLessThan(40);
  expect(lines.at(-1)).toBe("");
});
