import { join } from "node:path";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run, RunSummary } from "../../src/protocol/runs.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { swarm as swarmCommand } from "../support/swarm/command.ts";
import { makeProject, startSwarm } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const OTHER = "was written by another version of IO and cannot be read by this one. Use that version, or start a new run.";
const INPUTS = [
  ["r_notjson", "version 9 keeps them elsewhere"],
  ["r_shape", JSON.stringify({ version: 9, models: { pm: "x" }, unattended: true })],
] as const;

/** Unfinished runs as stored by another version in another format. */
function insertRuns(store: Store, projectPath: string, conversation?: string): void {
  for (const [id, inputs] of INPUTS)
    openRuns(store).create({
      id,
      projectPath,
      issue: "Of another time",
      inputs,
      now: "2030-01-01T00:00:00.000Z",
      ...(conversation && { conversation }),
    });
}

test("runs whose inputs another version wrote are told as such, hide no other run, and are not resumed", async () => {
  const { swarm, store, project, settings, model } = await startSwarm({
    files: { "swarm.config.yaml": "pipeline: [{phase: spec, agent: pm}]" },
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Ours", settings })).finished;
  insertRuns(store, project);
  const asked = model.requests.length;
  expect(swarm.list().map(({ id, status, reason }) => ({ id, status, reason }))).toEqual([
    { id: "r_shape", status: "interrupted", reason: `some of this run ${OTHER}` },
    { id: "r_notjson", status: "interrupted", reason: `some of this run ${OTHER}` },
    { id: run.id, status: "done", reason: null },
  ]);
  expect(swarm.orphans(10).map(({ id }) => id)).toEqual(["r_shape"]);
  for (const [id] of INPUTS) {
    expect(swarm.show(id)).toMatchObject({ id, issue: "Of another time", models: [], reason: expect.stringContaining(OTHER) });
    await expect(swarm.resume(id)).rejects.toThrow(`run ${id} ${OTHER}`);
    expect(swarm.cancel(id)).toMatchObject({ status: "cancelled" });
  }
  expect(model.requests).toHaveLength(asked);
});

test("a journal with results of another version is shown without them, and a resume that needs one says so", async () => {
  const { swarm, store, project, settings, roles } = await startSwarm({
    script: ({ role }) => (role === "pm-reviewer" ? { say: "No." } : undefined),
    files: {
      "swarm.config.yaml":
        "pipeline: [{phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: OK, onExhausted: fail}]}]",
    },
  });
  const { id } = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  const change = (key: string) =>
    store.db.prepare("UPDATE run_steps SET result = ? WHERE run_id = ? AND key = ?").run('{"v":9}', id, key);
  for (const key of ["loop:spec/review:pm-reviewer", "phase:spec", "spec/draft:pm"]) change(key);
  expect(swarm.list()[0]).toMatchObject({
    id,
    phases: [],
    reason: `spec: pm-reviewer did not approve the specification (some of this run ${OTHER})`,
  });
  expect(swarm.show(id)).toMatchObject({
    loops: [],
    steps: expect.arrayContaining([expect.objectContaining({ key: "spec/draft:pm" })]),
  });
  const before = roles().length;
  const resumed = await (await swarm.resume(id)).finished;
  expect(resumed).toMatchObject({ status: "failed", reason: expect.stringContaining(`step spec/draft:pm ${OTHER}`) });
  expect(roles()).toHaveLength(before);
});

test("a daemon on a home with such runs starts, lists them beside the others, and tells whoever waits for one", {
  timeout: 60_000,
}, async () => {
  const home = temporaryHome();
  const model = await scriptedModel((request) => ({
    say: lastUserText(request).includes("[via background]") ? "I see." : "Hello.",
  }));
  const project = makeProject();
  const store = openStore(join(home, "io.db"));
  insertRuns(store, project, "here");
  store.close();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  expect(await daemon.ask({ text: "hello" })).toMatchObject({ status: "done", reply: "Hello." });
  const { items } = await daemon.json<{ items: RunSummary[] }>("GET", "/api/runs");
  expect(items.map(({ id }) => id)).toEqual(["r_shape", "r_notjson"]);
  expect(await daemon.json<Run>("GET", "/api/runs/r_notjson")).toMatchObject({ reason: expect.stringContaining(OTHER) });
  const told = await until("the news", async () =>
    (await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=here")).items.find(
      ({ status }) => status === "done",
    ),
  );
  expect(told).toMatchObject({ source: { about: "r_shape" }, text: expect.stringContaining(`run r_shape ${OTHER}`) });
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  expect(await swarmCommand(["resume", "r_notjson"], project, env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`run r_notjson ${OTHER}`),
  });
});
