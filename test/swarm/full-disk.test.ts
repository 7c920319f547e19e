import { spawnSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { News } from "../../src/protocol/events.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { collectEndings } from "../support/home.ts";
import { type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { git, type Harness, makeProject, startSwarm } from "../support/swarm/index.ts";
import { isWhole } from "../support/sweep.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let disk: SmallDisk;
let harness: Harness;
let hear: (news: News) => void = () => undefined;
/** The roles that are asked in an undisturbed run. */
let usually: string[];

beforeAll(async () => {
  disk = await smallDisk(64, atTheEnd);
  harness = await startSwarm({
    folder: disk.folder,
    checks: [{ name: "test", command: "echo made > made.txt && rm made.txt", cwd: "." }],
    parts: { emit: (news) => hear(news) },
    atTheEnd: atTheEnd,
  });
  await run();
  usually = harness.roles();
}, 120_000);
afterEach(() => disk.free());

async function run(): Promise<Run> {
  const { swarm, project, settings } = harness;
  return (await swarm.start({ projectPath: project, issue: "Add it", settings })).finished;
}

/** Fills the disk when a step event arrives, and frees it once the run has been affected. */
function fillAt(type: "step.started" | "step.finished", step: string): () => boolean {
  let filled = false;
  hear = (news) => {
    if (filled || news.type !== type || !news.data.key.startsWith(step)) return;
    filled = true;
    // Synchronously, because the run continues immediately.
    spawnSync("dd", ["if=/dev/zero", `of=${disk.ballast}`, "bs=4k"]);
    const { runId } = news.data;
    const felt = () => harness.log().some((line) => line.includes("goes on when it can") && line.includes(runId));
    void until("the run to be cut off", felt, 60_000).finally(disk.free);
  };
  return () => filled;
}

/** Frees pages inside the database, so that it can still write on a full disk. */
const leaveRoomInDatabase = () =>
  harness.store.db.exec("CREATE TABLE room (x); INSERT INTO room VALUES (zeroblob(6000000)); DROP TABLE room");

/** Steps around which something other than a model's answer is written. */
const BETWEEN = [
  ...["run/base", "spec/draft:pm", "spec/review:pm-reviewer/1", "decompose/tasks:pm/1", "implement/stream-1/open"],
  ...["implement/stream-1/commit/1", "implement/stream-1/checks/", "implement/stream-1/qa:tester/1/tidy", "implement/turn/1"],
  ...["implement/stream-1/merge/1", "implement/result", "run/commits"],
];
/** Running all of them takes minutes. */
const CUTS: ["nowhere" | "only to the database", "step.started" | "step.finished", string][] = isWhole
  ? BETWEEN.flatMap((step) => [
      ["nowhere", "step.started", step],
      ["nowhere", "step.finished", step],
    ])
  : [
      ["nowhere", "step.finished", "spec/draft:pm"],
      ["nowhere", "step.started", "implement/stream-1/merge/1"],
      ["only to the database", "step.started", "implement/stream-1/commit/1"],
      ["only to the database", "step.started", "implement/stream-1/checks/"],
    ];

test.each(CUTS)(
  "a run that can write %s at %s %s goes on when there is room, and asks nobody twice",
  {
    timeout: 90_000,
  },
  async (what, type, step) => {
    if (what === "only to the database") leaveRoomInDatabase();
    const asked = harness.roles().length;
    const filled = fillAt(type, step);
    const ended = await run();
    expect(filled()).toBe(true);
    expect(ended).toMatchObject({ status: "done", outcome: "approved", reason: null });
    expect(ended.evidence.every(({ exitCode }) => exitCode === 0)).toBe(true);
    expect(ended.steps.filter(({ state, error }) => state !== "done" || error !== null)).toEqual([]);
    expect(git(harness.project, "show", `${ended.branch}:T1.txt`)).toBe("work of T1");
    expect(harness.roles().slice(asked)).toEqual(usually);
  },
);

test("a run whose project lies on a full disk fails with a sentence that says so, and can be resumed", {
  timeout: 120_000,
}, async () => {
  hear = () => undefined;
  const other = await smallDisk(16);
  const project = makeProject({}, true, other.folder);
  hear = (news) => {
    if (news.type === "step.started" && news.data.key === "implement/stream-1/commit/1")
      spawnSync("dd", ["if=/dev/zero", `of=${other.ballast}`, "bs=4k"]);
  };
  const { swarm, settings } = harness;
  const { id, finished } = await swarm.start({ projectPath: project, issue: "Add it", settings });
  const failed = await finished;
  expect(failed).toMatchObject({ status: "failed", outcome: "failed" });
  expect(failed.reason).toMatch(new RegExp(`^the disk is full \\(.+\\). Free some space, then: swarm resume ${id}$`, "s"));
  hear = () => undefined;
  other.free();
  const asked = harness.roles().length;
  const resumed = await (await swarm.resume(id)).finished;
  expect(resumed).toMatchObject({ status: "done", outcome: "approved" });
  expect(harness.roles().slice(asked)).not.toContain("engineer");
});
