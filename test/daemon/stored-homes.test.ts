import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ConversationInfo } from "../../src/protocol/conversations.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run, RunSummary } from "../../src/protocol/runs.ts";
import type { Activity, Decision, Squad, Task } from "../../src/protocol/squads.ts";
import type { Usage } from "../../src/protocol/usage.ts";
import type { TestDaemon } from "../support/daemon.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { daemonOn } from "../support/squads.ts";
import { storedHome, withDatabase } from "../support/stored-home.ts";
import { until } from "../support/until.ts";

const NOW_READING = { timeout: 60_000 };
const items = async <T>(daemon: TestDaemon, path: string): Promise<T[]> => {
  const response = await daemon.fetch(path);
  expect([path, response.status]).toEqual([path, 200]);
  return ((await response.json()) as { items: T[] }).items;
};
const answered = (daemon: TestDaemon) =>
  until("what was under way to be answered", async () => {
    const busy = await items<Message>(daemon, "/api/messages?conversation=busy");
    return busy.every(({ status }) => status === "done") ? busy : undefined;
  });

test("a home of the version before opens and serves, with everything in it", NOW_READING, async () => {
  const { home, folder } = storedHome("home-0005");
  const before = withDatabase(home, (db) => ({
    usage: db.prepare("SELECT count(*) AS calls, sum(input_tokens) AS tokens FROM usage").get() as {
      calls: number;
      tokens: number;
    },
    events: db.prepare("SELECT id, type FROM events ORDER BY id").all() as { id: number; type: string }[],
    steps: db.prepare("SELECT count(*) AS count FROM run_steps WHERE kind IN ('call','checks','git')").get() as { count: number },
  }));
  const model = await scriptedModel(() => ({ say: "Here I am again." }));
  const daemon = await daemonOn(model, home);
  expect(existsSync(join(home, "io.db.before-0006-growth.bak"))).toBe(true);

  const busy = await answered(daemon);
  expect(busy.map(({ text, attempts }) => [text, attempts])).toEqual([
    ["and this comes after", 1],
    ["wait for ever", 2],
  ]);
  expect(model.requests.map(lastUserText).filter((text) => text.includes("wait for ever"))).toHaveLength(1);

  const main = await items<Message>(daemon, "/api/messages?conversation=main");
  expect(main.map(({ source, status }) => [source.channel, status])).toEqual([
    ...Array(3).fill(["background", "done"]),
    ["api", "done"],
    ["api", "done"],
  ]);
  const asked = main[3]!;
  expect(asked).toMatchObject({
    reply: "That is done.",
    route: { answered: "delegated", tools: ["squad_delegate"] },
    usage: { calls: 2 },
  });
  const again = (text: string) => daemon.json("POST", "/api/messages", { text, idempotencyKey: "note-1" });
  expect(await again(asked.text)).toMatchObject({ id: asked.id, status: "done" });
  expect(await again("other words")).toMatchObject({ error: { code: "conflict" } });
  const names = await items<ConversationInfo>(daemon, "/api/conversations");
  expect(names.map(({ name, title, messages, waiting }) => ({ name, title, messages, waiting }))).toEqual([
    { name: "busy", title: "wait for ever", messages: 2, waiting: 0 },
    { name: "main", title: main.at(-1)?.text, messages: 5, waiting: 0 },
    { name: "kitchen", title: expect.any(String), messages: 1, waiting: 0 },
  ]);
  const unset = { folder: null, mode: null, model: null, running: 0, lastMessageAt: expect.any(String) };
  for (const each of names) expect(each).toMatchObject(unset);
  expect(await daemon.json("GET", "/api/status")).toMatchObject({
    queue: { depth: 0 },
    counts: { done: 8, failed: 0, cancelled: 0, squads: 1, tasks: 1, tasksQueued: 0 },
    retention: { limits: { messagesDays: 365, events: 20_000 }, lastAt: null, removed: {} },
  });

  const view = await daemon.json<Squad & { agents: unknown[]; decisions: Decision[]; tasks: Task[] }>(
    "GET",
    "/api/squads/widgets",
  );
  expect(view).toMatchObject({ projectPath: folder, agents: [{ roleTitle: "Engineer" }, { roleTitle: "Writer" }] });
  expect(view.decisions.map(({ decision, author }) => [decision, author])).toContainEqual(["English only", "swarm"]);
  const task = await daemon.json<Task>("GET", `/api/tasks/${asked.route.tasks[0]}`);
  expect(task).toMatchObject({
    status: "done",
    evidence: { filesChanged: ["note.txt"] },
    origin: { conversation: "main" },
    usage: { calls: 2 },
  });
  const activity = await items<Activity>(daemon, `/api/tasks/${task.id}/activity`);
  expect(activity.map(({ kind }) => kind)).toEqual(["queued", "started", "model", "tool", "tool", "model", "ended"]);

  const runs = await items<RunSummary>(daemon, "/api/runs");
  expect(runs.map(({ issue, status, outcome }) => [issue, status, outcome])).toEqual([
    ["Do the impossible", "failed", "unapproved"],
    ["Greet in English", "done", "approved"],
  ]);
  const shown = await Promise.all(runs.map(({ id }) => daemon.json<Run>("GET", `/api/runs/${id}`)));
  expect(shown.flatMap(({ steps }) => steps)).toHaveLength(before.steps.count);
  expect(shown[1]).toMatchObject({
    decisions: ["English only"],
    streams: [{ number: 1, status: "done" }],
    usage: runs[1]!.usage,
  });
  expect(runs[1]!.usage.calls).toBeGreaterThan(2);

  const spent = await items<Usage & { name: string }>(daemon, "/api/usage?by=actor");
  const fresh = model.requests.length;
  expect(spent.reduce((sum, { calls }) => sum + calls, 0)).toBe(before.usage.calls + fresh);
  const replay = await daemon.follow({ lastEventId: "0" });
  await until("the events from before", () => replay.events.length >= before.events.length);
  expect(replay.events.slice(0, before.events.length).map(({ id, event }) => ({ id: Number(id), type: event }))).toEqual(
    before.events,
  );
});

test(
  "a row that another version wrote hides nothing else, and a run of its says so when it is resumed",
  NOW_READING,
  async () => {
    const { home } = storedHome("home-0005");
    withDatabase(home, (db) =>
      db.exec(`
      UPDATE runs SET inputs = '{"pipeline":{"version":9}}' WHERE issue = 'Do the impossible';
      UPDATE runs SET outcome = 'praised' WHERE issue = 'Greet in English';
      UPDATE run_steps SET result = 'no JSON at all', usage = '{"coins":3}' WHERE kind IN ('phase', 'loop');
      INSERT INTO runs (id, status, project_path, issue, inputs, created_at) VALUES ('r_next', 'running', '/nowhere', 'Later', '', '2026-01-01');
      INSERT INTO run_steps (run_id, key, kind, phase, inputs_hash, state, started_at)
        SELECT id, 'poem:1', 'poem', 'muse', '', 'done', '' FROM runs WHERE issue = 'Greet in English';
      UPDATE messages SET source = '{"channel":"pigeon"}', route = '[1]' WHERE text = 'good morning';
      UPDATE messages SET source = 'torn {', error = 'torn {' WHERE text LIKE 'I like tea%';
      UPDATE agent_tasks SET evidence = '{"photos":[]}', origin = 'torn {', error = '7', delivered = 0;
      UPDATE task_askers SET origin = '{}';
      UPDATE task_activity SET data = 'torn {';
      UPDATE squads SET universe = 'muppets';
      UPDATE events SET data = 'torn {' WHERE type = 'run.finished';
      UPDATE io_state SET value = 'torn {';`),
    );
    const model = await scriptedModel(() => ({ say: "Here I am again." }));
    const daemon = await daemonOn(model, home);
    await answered(daemon);
    expect((await items<Message>(daemon, "/api/messages")).at(-1)).toMatchObject({ text: "good morning", reply: "Hello, Ada." });
    expect(await items<Message>(daemon, "/api/messages?conversation=kitchen")).toMatchObject([{ reply: "That is done." }]);
    expect(await items<Task>(daemon, "/api/tasks")).toMatchObject([{ status: "done", evidence: null, origin: null }]);
    expect(await items<Squad>(daemon, "/api/squads")).toMatchObject([{ slug: "widgets" }]);
    const runs = await items<RunSummary>(daemon, "/api/runs");
    expect(runs.map(({ issue, status, outcome }) => [issue, status, outcome])).toEqual([
      ["Later", "interrupted", null],
      ["Do the impossible", "failed", "unapproved"],
      ["Greet in English", "done", null],
    ]);
    for (const { id } of runs) expect((await daemon.fetch(`/api/runs/${id}`)).status).toBe(200);
    const resumed = await daemon.fetch(`/api/runs/${runs[1]!.id}/resume`, { method: "POST" });
    expect(resumed.status).toBe(409);
    expect(await resumed.text()).toMatch(/written by another version of IO/);
    const replay = await daemon.follow({ lastEventId: "0" });
    const newest = () => replay.of("message.finished").some(({ body }) => body.reply === "Here I am again.");
    await until("what came after the torn events", newest);
    expect(replay.of("run.finished")).toEqual([]);
    expect(daemon.child.exitCode).toBeNull();
  },
);
