import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { createDailyDigest, createDigest } from "../../src/news/digest.ts";
import { createNews } from "../../src/news/news.ts";
import { isQuiet } from "../../src/news/quiet-hours.ts";
import type { Owed } from "../../src/protocol/outbox.ts";
import { createDigestRows } from "../../src/store/digest.ts";
import { openStore } from "../../src/store/open.ts";
import { createOutboxRows } from "../../src/store/outbox.ts";
import { createState } from "../../src/store/state.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { digestOf, runSchedule, schedule } from "../support/news.ts";
import { inDatabase } from "../support/orchestrator.ts";
import { characterOf, delegate, ended, project, squadWith } from "../support/squads.ts";
import { write } from "../support/swarm/index.ts";
import { quietLog } from "../support/swarm/quiet.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let model: ModelServer;
let daemon: TestDaemon;
beforeAll(async () => {
  model = await scriptedModel(
    (request) => {
      if (lastUserText(request).includes("break")) return { status: 400, message: "no" };
      if (lastUserText(request).includes("write")) return write("asked.txt", "x");
      return { say: characterOf(request) ? "Looked." : "Good." };
    },
    undefined,
    atTheEnd,
  );
  daemon = await startDaemonProcess(
    temporaryHome({ prices: { scripted: { input: 3, output: 15 } } }, atTheEnd),
    providerEnvironment(model.url),
    atTheEnd,
  );
}, 60_000);
afterAll(end);

test("the digest's numbers match the records, through the API and the command", async () => {
  await daemon.ask({ text: "hello" });
  await daemon.ask({ text: "break" });
  await squadWith(daemon, project(undefined, atTheEnd), "web", ["Backend Engineer"]);
  await ended(daemon, (await delegate(daemon, "web", { task: "look" })).id);
  await ended(daemon, (await delegate(daemon, "web", { task: "break" })).id, 60_000);
  const { id } = await schedule(daemon, "watch it");
  await runSchedule(daemon, id);
  await until(
    "everything to have ended",
    async () => (await daemon.json<{ queue: { depth: number } }>("GET", "/api/status")).queue.depth === 0,
    60_000,
  );
  const folder = project(undefined, atTheEnd);
  await daemon.json("PATCH", "/api/conversations/asking", { mode: "ask", folder });
  await daemon.json("POST", "/api/messages", { text: "write it", conversation: "asking" });
  await until(
    "the question",
    async () => (await daemon.json<{ items: unknown[] }>("GET", "/api/approvals?state=waiting")).items.length === 1,
  );

  const digest = await digestOf(daemon);
  const independent = inDatabase(daemon.home, (db) => {
    const number = (sql: string) => Number((db.prepare(sql).get() as { n: number }).n);
    const counts = (status: string) => ({
      messages: number(`SELECT count(*) AS n FROM messages WHERE status = '${status}'`),
      tasks: number(`SELECT count(*) AS n FROM agent_tasks WHERE status = '${status}'`),
      runs: number(`SELECT count(*) AS n FROM runs WHERE status = '${status}'`),
    });
    const [input, output] = [
      number("SELECT sum(input_tokens) AS n FROM usage"),
      number("SELECT sum(output_tokens) AS n FROM usage"),
    ];
    return {
      done: counts("done"),
      failed: counts("failed"),
      unproven: { tasks: 1, runs: 0 },
      waiting: { approvals: number("SELECT count(*) AS n FROM approvals WHERE state = 'waiting'") },
      cost: { calls: number("SELECT count(*) AS n FROM usage"), inputTokens: input, outputTokens: output, partial: false },
      money: (input * 3 + output * 15) / 1e6,
    };
  });
  const { money, ...rest } = independent;
  expect(digest).toMatchObject(rest);
  expect(digest.cost.money).toBeCloseTo(money, 6);
  expect(digest.done.messages).toBeGreaterThan(1);
  expect(digest.failed.tasks).toBe(1);
  expect(digest.waiting.approvals).toBe(1);
  expect(digest.failed.messages).toBeGreaterThan(0);

  const shown = await runIo(["digest"], daemon.home);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/Failed: \d messages?, 1 task\n/) });
  expect(shown.stdout).toMatch(/Done: \d messages?, 1 task \(1 unproven\)\n/);
  const { until: _, since: __, ...stable } = digest;
  expect(JSON.parse((await runIo(["digest", "--since", "24h", "--json"], daemon.home)).stdout)).toMatchObject(stable);
  expect((await runIo(["digest", "--since", "sometime"], daemon.home)).code).toBe(2);
  // A period in which nothing happened.
  expect(await digestOf(daemon, "2100-01-01")).toMatchObject({ done: { messages: 0, tasks: 0, runs: 0 }, cost: { calls: 0 } });
});

test("quiet hours may span midnight, and their end is exclusive", () => {
  const at = (time: string) => new Date(`2026-03-02T${time}:00`);
  const quiet = (hours: string) =>
    ["06:59", "07:00", "21:59", "22:00", "23:59", "00:00"].filter((time) => isQuiet(hours, at(time)));
  expect(quiet("22:00-07:00")).toEqual(["06:59", "22:00", "23:59", "00:00"]);
  expect(quiet("07:00-22:00")).toEqual(["07:00", "21:59"]);
  expect(isQuiet(undefined, at("23:00"))).toBe(false);
});

/** A daily digest with its own database and a clock set by the test. */
function daily(config: { digest?: string; quietHours?: string }) {
  const store = openStore(":memory:");
  const rows = createOutboxRows(store);
  const clock = { at: new Date("2026-03-02T12:00:00") };
  const owed: Owed[] = [];
  const news = createNews({
    ...{ config: () => config, findMessage: () => undefined, findApproval: () => undefined, findWork: () => undefined },
    ...{ filterOf: () => undefined, squadFilterOf: () => undefined, now: () => clock.at },
  });
  const make = () =>
    createDailyDigest({
      ...{ store, state: createState(store), config: () => config, outbox: rows, log: quietLog, now: () => clock.at },
      digest: createDigest({ rows: createDigestRows(store), outbox: rows, news, prices: () => ({}) }),
      owe: (each) => owed.push(each),
      personalSource: () => ({ channel: "api" }),
    });
  let messages = 0;
  return {
    owed,
    rows,
    digest: make,
    /** Checks at a given time, after a restart each time. */
    async look(time: string) {
      clock.at = new Date(`2026-03-${time}:00`);
      await make().look();
      return owed.length;
    },
    answered(time: string) {
      messages += 1;
      store.db
        .prepare(
          `INSERT INTO messages (id, conversation, source, text, status, reply, created_at, finished_at)
           VALUES (?, 'main', '{"channel":"api"}', 'x', 'done', 'y', ?, ?)`,
        )
        .run(`m_${messages}`, ...Array(2).fill(new Date(`2026-03-${time}:00`).toISOString()));
    },
    hold(text: string) {
      const source = { channel: "api" as const };
      rows.add("lane", { kind: "news", about: "x", conversation: "main", source, text, level: "normal", key: text });
      rows.settle(rows.next("lane")!.seq, "held");
    },
  };
}

test("one digest a day at its time, across restarts; an empty day is skipped, and a missed digest is sent once", async () => {
  const { look, answered, owed } = daily({ digest: "09:00" });
  answered("02T11:00");
  expect(await look("02T12:00")).toBe(0);
  answered("02T13:00");
  expect(await look("03T08:59")).toBe(0);
  expect(await look("03T09:00")).toBe(1);
  expect(await look("03T09:01")).toBe(1);
  expect(owed[0]!.text).toContain("Done: 1 message\n");
  // Nothing happens on the fourth day.
  expect(await look("04T09:00")).toBe(1);
  answered("04T10:00");
  // The daemon is down for more than two days.
  expect(await look("07T15:00")).toBe(2);
  expect(await look("07T15:01")).toBe(2);
  expect(owed[1]!.text).toContain("Done: 1 message\n");
});

test("the digest marks finished work as unproven exactly when its task or run does", async () => {
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const at = "2026-03-02T12:00:00.000Z";
  store.db.exec(`INSERT INTO squads (slug, name, project_path, universe, created_at, updated_at)
    VALUES ('s', 'S', '/p', 'u', '${at}', '${at}')`);
  const task = store.db.prepare(
    `INSERT INTO agent_tasks (id, squad_slug, agent, description, status, evidence, created_at, finished_at)
     VALUES (?, 's', 'a', 'd', ?, ?, '${at}', '${at}')`,
  );
  const evidence = [
    { proven: true },
    { proven: false, verdict: "done; but an older word" },
    { verdict: "done; npm test last exited 0" },
    { verdict: "claimed done; no test command was run" },
    {},
  ].map((each) => JSON.stringify(each));
  for (const [index, each] of [...evidence, null, "{ half of it"].entries()) task.run(`t_${index}`, "done", each);
  task.run("t_failed", "failed", null);
  const run = store.db.prepare(
    `INSERT INTO runs (id, project_path, issue, inputs, status, outcome, created_at, finished_at)
     VALUES (?, '/p', 'i', '{}', 'done', ?, '${at}', '${at}')`,
  );
  for (const [index, outcome] of ["approved", "untested", "unapproved"].entries()) run.run(`r_${index}`, outcome);
  const counted = await createDigestRows(store).count({ since: "2026-03-02", until: "2026-03-03" });
  expect(counted).toMatchObject({ done: { tasks: 7, runs: 3 }, failed: { tasks: 1 }, unproven: { tasks: 5, runs: 2 } });
});

test("held-back news is listed in the next digest or, without a digest time, once when quiet hours end", async () => {
  for (const config of [{ digest: "09:00", quietHours: "22:00-07:00" }, { quietHours: "22:00-09:00" }]) {
    const { look, hold, owed, rows } = daily(config);
    await look("02T12:00");
    hold("the build is green");
    expect(await look("03T06:30")).toBe(0);
    expect(await look("03T09:00")).toBe(1);
    expect(owed[0]).toMatchObject({ kind: "news", level: "normal", text: expect.stringContaining("main: the build is green") });
    expect(rows.heldCount()).toBe(0);
    expect(await look("04T09:00")).toBe(1);
  }
});

test("the numbers are exact over many full and partial days, and over more rows than one query reads", async () => {
  const file = join(temporaryFolder(), "io.db");
  const store = openStore(file);
  onTestFinished(() => store.close());
  store.db.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 119999)
    INSERT INTO messages (id, conversation, source, text, status, reply, created_at, finished_at)
    SELECT 'm' || i, 'c', '{}', 'x', iif(i % 3 = 0, 'failed', 'done'), 'y', 't',
      strftime('%Y-%m-%dT%H:%M:%fZ', 1772000000 + i / 4 * 3, 'unixepoch') FROM n`);
  store.db.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5999)
    INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at, rehearsal)
    SELECT 'o', 'a', 'm' || (i % 2), i, 1, 0, 1, strftime('%Y-%m-%dT%H:%M:%fZ', 1772000000 + i * 100, 'unixepoch'), 0 FROM n`);
  const rows = createDigestRows({ db: store.db, file });
  const count = (sql: string, ...values: string[]) =>
    Number((store.db.prepare(sql).get(...values) as { n: number | null }).n ?? 0);
  for (const [since, until] of [
    ["2026-02-25T06:13:20.000Z", "2026-03-10T00:00:00.000Z"],
    ["2026-02-26T00:00:00.000Z", "2026-02-28T00:00:00.000Z"],
    ["2026-02-25T08:00:00.500Z", "2026-02-25T09:13:20.000Z"],
    ["2026-02-25T23:59:59.999Z", "2026-02-27T00:00:00.001Z"],
  ] as const) {
    const within = `>= ? AND finished_at < ?`;
    for (const status of ["done", "failed"] as const)
      expect((await rows.count({ since, until }))[status].messages).toBe(
        count(`SELECT count(*) AS n FROM messages WHERE status = '${status}' AND finished_at ${within}`, since, until),
      );
    const { used } = await rows.count({ since, until });
    const sum = (pick: (part: (typeof used)[number]) => number) => used.reduce((total, part) => total + pick(part), 0);
    const where = "FROM usage WHERE created_at >= ? AND created_at < ?";
    expect([sum(({ calls }) => calls), sum(({ inputTokens }) => inputTokens)]).toEqual([
      count(`SELECT count(*) AS n ${where}`, since, until),
      count(`SELECT sum(input_tokens) AS n ${where}`, since, until),
    ]);
  }
});
