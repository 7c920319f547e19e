import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openStore } from "../../src/store/open.ts";
import { openRuns, type StepHead } from "../../src/store/runs.ts";
import { createToolCalls, type NewToolCall } from "../../src/store/tool-calls.ts";
import { createJournal } from "../../src/swarm/steps/journal.ts";
import { temporaryFolder } from "../support/home.ts";
import { startSwarm, task } from "../support/swarm/index.ts";
import { split, YAML } from "../support/swarm/streams.ts";

/** A store that reports which writes do not wait for the disk. */
function watchedStore() {
  const path = join(temporaryFolder(), "io.db");
  const connection = new DatabaseSync(path);
  const store = openStore(path, { connect: () => connection });
  onTestFinished(() => store.close());
  const watched: { how: "waited for" | "soon" | "later" } = { how: "waited for" };
  const watch =
    (how: "soon" | "later", write: <T>(work: () => T) => T) =>
    <T>(work: () => T): T => {
      watched.how = how;
      try {
        return write(work);
      } finally {
        watched.how = "waited for";
      }
    };
  return { store: { ...store, soft: watch("later", store.soft), soon: watch("soon", store.soon) }, watched, connection };
}

/** The steps whose end was flushed to the disk, and whether the write waited for that. */
function waitedFor({ store, watched, connection }: ReturnType<typeof watchedStore>): string[] {
  const waited: string[] = [];
  connection.function("noted", (key: unknown) => {
    if (watched.how !== "later") waited.push(`${key}: ${watched.how}`);
    return 0;
  });
  store.db.exec(
    "CREATE TEMP TRIGGER ended AFTER UPDATE OF finished_at ON run_steps WHEN NEW.finished_at IS NOT NULL BEGIN SELECT noted(NEW.key); END",
  );
  return waited;
}

test("a decision waits for the disk, an answer is brought there meanwhile, and what git or a check says can be asked again", async () => {
  const watching = watchedStore();
  const { store } = watching;
  const waited = waitedFor(watching);
  const runs = openRuns(store);
  const at = new Date("2030-01-01T00:00:00Z");
  runs.create({ id: "r_1", projectPath: "/somewhere", issue: "Greet", inputs: "{}", now: at.toISOString() });
  const signal = new AbortController().signal;
  const journal = createJournal({ runs, runId: "r_1", life: 1, emit: () => undefined, signal, now: () => at });
  const steps: StepHead[] = [
    { key: "an answer", kind: "call", phase: "spec" },
    { key: "a commit", kind: "git", phase: "implement" },
    { key: "a check", kind: "checks", phase: "implement" },
    { key: "who comes next", kind: "git", phase: "implement", decides: true },
  ];
  for (const head of steps) await journal.step(z.number(), head, {}, async () => ({ value: 1 }));
  expect(waited).toEqual(["an answer: soon", "who comes next: waited for"]);
  expect(runs.steps("r_1").map(({ state, result }) => [state, result])).toEqual(steps.map(() => ["done", "1"]));
});

test("in a run those are the answers, which stream is merged next, and what its branch becomes", async () => {
  const watching = watchedStore();
  const waited = waitedFor(watching);
  const { swarm, project, settings } = await startSwarm({
    script: split(task("T1", "One"), task("T2", "Two")),
    files: { "swarm.config.yaml": YAML() },
    parts: { store: watching.store },
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  const calls = run.steps.filter(({ kind }) => kind === "call").map(({ key }) => `${key}: soon`);
  expect(run).toMatchObject({ outcome: "approved", streams: [{ merged: true }, { merged: true }] });
  expect([...waited].sort()).toEqual(
    [...calls, "implement/turn/1: waited for", "implement/turn/2: waited for", "run/commits: waited for"].sort(),
  );
});

test("that an effect is about to happen waits for the disk, and how it ended is brought there meanwhile", () => {
  const { store, watched, connection } = watchedStore();
  const waited: string[] = [];
  connection.function("noted", (what: unknown) => {
    if (watched.how !== "later") waited.push(`${what}: ${watched.how}`);
    return 0;
  });
  store.db.exec("CREATE TEMP TRIGGER begun AFTER INSERT ON tool_calls BEGIN SELECT noted(NEW.kind || ' begun'); END");
  store.db.exec("CREATE TEMP TRIGGER ended AFTER UPDATE ON tool_calls BEGIN SELECT noted(NEW.kind || ' ended'); END");
  const calls = createToolCalls(store);
  for (const kind of ["read", "effect"] as const) {
    const call: NewToolCall = {
      ...{ callId: kind, sessionId: "s", owner: "o", attempt: 1, actor: "a", tool: "shell", kind },
      ...{ args: "{}", argsHash: "h", state: "begun", createdAt: "2030-01-01T00:00:00.000Z" },
    };
    calls.end(calls.begin(call), kind, { state: "done", result: "", resultHash: "", durationMs: 1 });
  }
  expect(waited).toEqual(["effect begun: waited for", "effect ended: soon"]);
});
