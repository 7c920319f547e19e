import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import type { TestDaemon } from "../support/daemon.ts";
import { holdDatabase } from "../support/database-holder.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { daemonOn, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { withDatabase } from "../support/stored-home.ts";
import { until } from "../support/until.ts";

test("a daemon lives on while another program holds its database, with events to forget, for longer than it waits", async () => {
  const model = await scriptedModel(() => ({ say: "fine" }));
  const home = temporaryHome();
  const first = await daemonOn(model, home);
  await first.kill("SIGTERM");
  withDatabase(home, (db) =>
    db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 21000)
      INSERT INTO events (type, data, created_at) SELECT 'squad.updated', '{}', '2026-01-01T00:00:00.000Z' FROM n`),
  );
  const holder = await holdDatabase(home);
  const daemon = await daemonOn(model, home);
  const started = performance.now();
  await until("longer than a write waits", () => performance.now() - started > 1_000);
  expect(daemon.child.exitCode).toBeNull();
  expect((await daemon.fetch("/api/health")).status).toBe(200);
  await holder.release();
  expect(await daemon.ask({ text: "hello" })).toMatchObject({ status: "done", reply: "fine" });
});

/** Asks a daemon for its status again and again, and measures the slowest answer. */
function watchHealth(daemon: TestDaemon): { slowest(): number; end(): Promise<void> } {
  let slowest = 0;
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      const asked = performance.now();
      expect((await daemon.fetch("/api/status")).status).toBe(200);
      slowest = Math.max(slowest, performance.now() - asked);
    }
  })();
  return {
    slowest: () => slowest,
    async end() {
      isOver = true;
      await done;
    },
  };
}

/** A model that waits for `go` before it answers a request that contains the word "slowly". */
async function waitingModel(command?: string) {
  let go = () => {};
  const gate = new Promise<void>((open) => {
    go = open;
  });
  const folder = project();
  const model = await scriptedModel(async (request) => {
    if (!lastUserText(request).includes("slowly")) return { say: "fine" };
    await gate;
    return command !== undefined && stepOf(request) === 0
      ? { call: [{ tool: "shell", args: { command } }] }
      : { say: "done slowly" };
  });
  const isAsked = () => model.requests.some((request) => lastUserText(request).includes("slowly"));
  return { model, go, folder, isAsked };
}

const post = (daemon: TestDaemon, text: string) =>
  daemon.fetch("/api/messages?wait=true", {
    method: "POST",
    body: JSON.stringify({ text, conversation: "other" }),
    headers: { "content-type": "application/json" },
  });

test("a message sent meanwhile is taken when the other program lets go, and holds nobody else up", async () => {
  const model = await scriptedModel(() => ({ say: "fine" }));
  const daemon = await daemonOn(model);
  await daemon.ask({ text: "hello" });
  const holder = await holdDatabase(daemon.home);
  const health = watchHealth(daemon);
  const sent = performance.now();
  const answer = post(daemon, "and now?");
  await until("a while", () => performance.now() - sent > 1_500);
  await holder.release();
  const answered = await answer;
  await health.end();
  expect([answered.status, await answered.json()]).toMatchObject([200, { status: "done", reply: "fine" }]);
  // A write blocks the event loop for 50 ms at most; the rest is due to this machine.
  expect(health.slowest()).toBeLessThan(1_000);
});

test("what is said meanwhile is refused after five seconds; a turn under way runs its tool once and ends as if nothing had been", async () => {
  const { model, go, folder, isAsked } = await waitingModel("echo once >> effects");
  const daemon = await daemonOn(model);
  await daemon.ask({ text: "hello" });
  const follower = await daemon.follow({ conversation: "main" });
  await daemon.json("PATCH", "/api/conversations/main", { folder });
  const { id } = await daemon.json<Message>("POST", "/api/messages", { text: "slowly, please" });
  await until("the model to be asked", isAsked);
  const holder = await holdDatabase(daemon.home);
  const health = watchHealth(daemon);
  go();

  const sent = performance.now();
  const refused = await post(daemon, "and now?");
  expect(performance.now() - sent).toBeGreaterThan(4_000);
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { error: { code: "unavailable", message: expect.stringMatching(/^Another program holds IO's database.*Send it again/) } },
  ]);
  expect((await daemon.fetch("/api/messages?conversation=main")).status).toBe(200);
  // A call that cannot be recorded is not started.
  expect(existsSync(join(folder, "effects"))).toBe(false);
  await health.end();
  expect(health.slowest()).toBeLessThan(1_000);
  await holder.release();

  expect(await messageEnd(daemon, id)).toMatchObject({ status: "done", reply: "done slowly", attempts: 1 });
  expect(readFileSync(join(folder, "effects"), "utf8")).toBe("once\n");
  const calls = await daemon.json<{ items: unknown[] }>("GET", `/api/messages/${id}/calls`);
  expect(calls.items).toMatchObject([{ tool: "shell", state: "done" }]);
  await until("everybody to be told", () => follower.of("message.finished").some(({ body }) => body.id === id));
  expect(await daemon.ask({ text: "and now?" })).toMatchObject({ status: "done" });
});

test("a tool that ends meanwhile has its result recorded, and the answer after it is not asked for twice", async () => {
  const { model, go, folder } = await waitingModel("touch begun; until test -e go; do sleep 0.05; done; echo over");
  go();
  const daemon = await daemonOn(model);
  await daemon.json("PATCH", "/api/conversations/main", { folder });
  const { id } = await daemon.json<Message>("POST", "/api/messages", { text: "slowly, please" });
  await until("the command to run", () => existsSync(join(folder, "begun")));
  const holder = await holdDatabase(daemon.home);
  writeFileSync(join(folder, "go"), "");
  const since = performance.now();
  await until("a while", () => performance.now() - since > 1_500);
  expect(model.requests).toHaveLength(1);
  await holder.release();
  expect(await messageEnd(daemon, id)).toMatchObject({ status: "done", reply: "done slowly" });
  expect(model.requests).toHaveLength(2);
  const calls = await daemon.json<{ items: unknown[] }>("GET", `/api/messages/${id}/calls`);
  expect(calls.items).toMatchObject([{ tool: "shell", state: "done", result: expect.stringContaining("over") }]);
});

test("a task whose answer comes meanwhile is done once the other program lets go", async () => {
  const { model, go, isAsked } = await waitingModel();
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "team", ["Engineer"]);
  const { id } = await delegate(daemon, "team", { task: "Work slowly." });
  await until("the model to be asked", isAsked);
  const holder = await holdDatabase(daemon.home);
  go();
  const since = performance.now();
  await until("a while", () => performance.now() - since > 1_500);
  await holder.release();
  expect(await ended(daemon, id)).toMatchObject({ status: "done", result: "done slowly" });
  expect(model.requests).toHaveLength(1);
});

test("what runs is stopped at once, though another program holds the database", async () => {
  const { model, go, folder } = await waitingModel("while :; do date +%s%N > beat; sleep 0.05; done");
  go();
  const daemon = await daemonOn(model);
  await daemon.json("PATCH", "/api/conversations/main", { folder });
  const { id } = await daemon.json<Message>("POST", "/api/messages", { text: "slowly, please" });
  const beat = () => readFileSync(join(folder, "beat"), "utf8");
  await until("the command to run", () => existsSync(join(folder, "beat")) && beat() !== "");
  const holder = await holdDatabase(daemon.home);
  const asked = performance.now();
  await daemon.fetch("/api/stop", { method: "POST" });
  let last = { text: beat(), at: performance.now() };
  await until("the command to end", () => {
    if (beat() !== last.text) last = { text: beat(), at: performance.now() };
    return performance.now() - last.at > 1_000;
  });
  expect(last.at - asked).toBeLessThan(4_000);
  await holder.release();
  expect(await messageEnd(daemon, id)).toMatchObject({ status: "cancelled" });
});

const messageEnd = (daemon: TestDaemon, id: string) =>
  until(
    "the turn's end",
    async () => {
      const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
      return message.finishedAt === null ? undefined : message;
    },
    30_000,
  );
