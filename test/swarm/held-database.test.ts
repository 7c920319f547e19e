import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { News } from "../../src/protocol/events.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { git, type Harness, startSwarm } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let harness: Harness;
let hear: (news: News) => void = () => undefined;
/** The roles that are asked in an undisturbed run. */
let usually: string[];

beforeAll(async () => {
  harness = await startSwarm({
    folder: temporaryFolder(atTheEnd),
    checks: [{ name: "test", command: "true", cwd: "." }],
    parts: { emit: (news) => hear(news) },
    atTheEnd,
  });
  await run();
  usually = harness.roles();
}, 120_000);

async function run(): Promise<Run> {
  const { swarm, project, settings } = harness;
  return (await swarm.start({ projectPath: project, issue: "Add it", settings })).finished;
}

/** Locks the database from another connection when a step event arrives, and unlocks it once the run has been affected. */
function holdAt(type: "step.started" | "step.finished", step: string): () => boolean {
  let held = false;
  hear = (news) => {
    if (held || news.type !== type || !news.data.key.startsWith(step)) return;
    held = true;
    const other = new DatabaseSync(join(harness.home, "io.db"));
    // An event emitted inside a transaction arrives while that transaction still holds the lock.
    queueMicrotask(() => {
      other.exec("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE");
      const { runId } = news.data;
      const felt = () => harness.log().some((line) => line.includes("goes on when it can") && line.includes(runId));
      void until("the run to be cut off", felt, 60_000).finally(() => {
        other.exec("ROLLBACK");
        other.close();
      });
    });
  };
  return () => held;
}

test.each([
  ["step.finished", "spec/draft:pm"],
  ["step.started", "implement/stream-1/commit/1"],
  ["step.started", "implement/stream-1/checks/"],
  ["step.finished", "implement/stream-1/merge/1"],
] as const)("a run whose database is held at %s %s goes on when it is free, and asks nobody twice", async (type, step) => {
  const asked = harness.roles().length;
  const held = holdAt(type, step);
  const ended = await run();
  expect(held()).toBe(true);
  expect(ended).toMatchObject({ status: "done", outcome: "approved", reason: null });
  expect(ended.steps.filter(({ state, error }) => state !== "done" || error !== null)).toEqual([]);
  expect(git(harness.project, "show", `${ended.branch}:T1.txt`)).toBe("work of T1");
  expect(harness.roles().slice(asked)).toEqual(usually);
});
