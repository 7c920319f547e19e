import { expect, test } from "vitest";
import { createProgress } from "../../src/cli/progress.ts";
import { type EventData, newsOf, type RunEventType } from "../../src/protocol/events.ts";
import { noUsage } from "../../src/protocol/usage.ts";

function watch() {
  let shown = "";
  const write = (text: string) => {
    shown += text;
  };
  const progress = createProgress({ write, colour: false, now: () => 0 });
  const hear = <T extends RunEventType>(type: T, data: Partial<EventData<T>>) =>
    progress.hear({ id: 1, ...newsOf(type, { runId: "r_1", ...data } as EventData<T>) });
  const finished = (key: string) => hear("step.finished", { key, state: "done", usage: noUsage(), verdict: null, error: null });
  return { progress, finished, shown: () => shown };
}

test("what agents say at the same time is shown in whole lines, and who speaks is named where it changes", () => {
  const { progress, finished, shown } = watch();
  const say = (stream: number, ...pieces: string[]) => {
    for (const text of pieces) progress.say({ key: `stream-${stream}`, agent: "engineer", stream, text });
  };
  say(1, "I wr", "ite the", " parser.\nAnd more.\nThen");
  say(2, "I test.", "\n");
  say(1, " I stop.");
  finished("stream-1");
  say(2, "All \u001b[2Jis well.");
  progress.end();
  expect(shown().split("\n")).toEqual([
    "┌ engineer, stream 1",
    "│ I write the parser.",
    "│ And more.",
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
