import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { holdDatabase } from "../support/database-holder.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { daemonOn } from "../support/squads.ts";
import { withDatabase } from "../support/stored-home.ts";
import { until } from "../support/until.ts";

const logOf = (home: string) => readFileSync(join(home, "logs", "io.log"), "utf8");

test("a daemon lives on while another program holds its database, with events to forget, for longer than it waits", {
  timeout: 60_000,
}, async () => {
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
  await until("longer than a write waits", () => performance.now() - started > 6_000);
  expect(daemon.child.exitCode).toBeNull();
  expect((await daemon.fetch("/api/health")).status).toBe(200);
  await holder.release();
  expect(await daemon.ask({ text: "hello" })).toMatchObject({ status: "done", reply: "fine" });
});

test("what is said meanwhile waits and is then refused as unavailable; a turn under way ends as if nothing had been", {
  timeout: 90_000,
}, async () => {
  let go = () => {};
  const gate = new Promise<void>((open) => {
    go = open;
  });
  const model = await scriptedModel(async (request) => {
    if (lastUserText(request).includes("slowly")) await gate;
    return { say: "fine" };
  });
  const daemon = await daemonOn(model, temporaryHome());
  await daemon.ask({ text: "hello" });
  const follower = await daemon.follow({ conversation: "main" });
  const { id } = await daemon.json<Message>("POST", "/api/messages", { text: "slowly, please" });
  await until("the model to be asked", () => model.requests.some((request) => lastUserText(request).includes("slowly")));
  const holder = await holdDatabase(daemon.home);

  const sent = performance.now();
  const refused = await daemon.fetch("/api/messages", {
    method: "POST",
    body: JSON.stringify({ text: "and now?" }),
    headers: { "content-type": "application/json" },
  });
  expect(performance.now() - sent).toBeGreaterThan(4_000);
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { error: { code: "unavailable", message: expect.stringMatching(/^Another program has held IO's database .*Send it again/) } },
  ]);
  expect((await daemon.fetch("/api/messages?conversation=main")).status).toBe(200);
  expect((await daemon.fetch("/api/status")).status).toBe(200);
  go();
  await until("its end to be kept from the disk", () => logOf(daemon.home).includes("queue failed and is tried again"), 20_000);
  await holder.release();

  const ended = await until(
    "the turn's end",
    async () => {
      const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
      return message.finishedAt === null ? undefined : message;
    },
    30_000,
  );
  expect(ended).toMatchObject({ status: "done", reply: "fine" });
  await until("everybody to be told", () => follower.of("message.finished").some(({ body }) => body.id === id));
  expect(await daemon.ask({ text: "and now?" })).toMatchObject({ status: "done" });
  expect(daemon.child.exitCode).toBeNull();
});
