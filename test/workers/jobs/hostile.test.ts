import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Msg } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { createLog } from "../../../src/lib/log.ts";
import { createRedactor } from "../../../src/lib/redact.ts";
import { noUsage } from "../../../src/protocol/usage.ts";
import { openStore } from "../../../src/store/open.ts";
import { createWorkerRows } from "../../../src/store/workers.ts";
import { hearWorkers } from "../../../src/workers/cluster/presence.ts";
import { connectTo, inboxOf } from "../../../src/workers/jobs/nats/connection.ts";
import { createDesk } from "../../../src/workers/jobs/nats/desk.ts";
import { createNatsDispatcher } from "../../../src/workers/jobs/nats/dispatcher.ts";
import { fromWorker, presenceSubject, wakeSubject } from "../../../src/workers/jobs/nats/names.ts";
import { signingKeyOf } from "../../../src/workers/jobs/nats/nkey.ts";
import { claimedHead, seal } from "../../../src/workers/jobs/nats/sealed.ts";
import { openWorker } from "../../../src/workers/jobs/nats/worker.ts";
import { PROTOCOL } from "../../../src/workers/jobs/port.ts";
import { hostileHands } from "../../support/dispatch/hostile.ts";
import { jobOf, LEASE_MS, testWorker } from "../../support/dispatch/work.ts";
import { quietLog } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { startNats, workerInfo } from "../../support/nats.ts";
import { until } from "../../support/until.ts";

/** A lease that outlasts the test. */
const CALM = { limits: { leaseMs: 60_000 } };
/** How many questions are answered with one kind of forgery before the next kind is tried. */
const EACH = 5;
const LOST = { state: "lost" };
const REFUSED = { state: "refused" };
const done = (value: string) => ({ state: "done", value, tree: null, commit: null, usage: noUsage() });

/** A daemon and two workers of one pool. w1 is hostile and has its own keys; w2 may be anyone. */
async function start({ isCareless = false } = {}) {
  const nats = await startNats([{ name: "w1" }, { name: "w2" }], onTestFinished, undefined, { isCareless });
  const folder = temporaryFolder();
  const store = openStore(join(folder, "io.db"));
  const rows = createWorkerRows(store);
  for (const name of ["w1", "w2"])
    rows.add({ name, labels: [], publicKey: nats.publicKey(name), capacity: 2, version: "1.0.0", protocol: PROTOCOL });
  const access = nats.accessTo("daemon");
  const connection = await connectTo(access);
  const workers = () => [workerInfo("w1"), workerInfo("w2")];
  const dispatcher = createNatsDispatcher({ store, workers, folder: join(folder, "blobs"), log: quietLog, leaseMs: LEASE_MS });
  const desk = createDesk({ seed: access.nkeySeed, keyOf: (name) => rows.find(name)?.publicKey });
  hearWorkers({ connection, desk, workers: rows, log: quietLog });
  dispatcher.attend(connection, desk);
  onTestFinished(async () => {
    await dispatcher.close();
    await connection.close();
    store.close();
  });
  const handsOf = (name: string) => hostileHands(nats.accessTo(name), desk.publicKey);
  return { nats, dispatcher, rows, notes: join(folder, "notes"), boss: connection, handsOf, mallory: await handsOf("w1") };
}

/** The victim: a real worker on its own connection. */
async function honest({ handsOf }: { handsOf: (name: string) => ReturnType<typeof hostileHands> }) {
  const { link } = await handsOf("w2");
  const lines: string[] = [];
  const log = createLog({ redactor: createRedactor(), echo: (line) => void lines.push(line) });
  const host = openWorker({ link, capacity: 2, worker: testWorker, log });
  onTestFinished(host.close);
  return lines;
}

test("a worker cannot have the server speak for it: it reads no stream, and its answers go nowhere but to itself", async () => {
  const { boss, mallory, handsOf } = await start();
  const victim = await handsOf("w2");
  const heard: string[] = [];
  victim.connection.subscribe(`${inboxOf("w2")}.>`, { callback: (_, { subject }) => void heard.push(subject) });
  victim.connection.subscribe(wakeSubject("w2"), { callback: (_, { subject }) => void heard.push(subject) });
  await victim.connection.flush();
  const refused: string[] = [];
  void (async () => {
    for await (const status of mallory.connection.status()) if (status.type === "error") refused.push(String(status.error));
  })();
  // A stream with content of its choice, on a server that supports streams.
  const stream = { name: "BOX", subjects: ["box.>"], allow_direct: true, storage: "memory" };
  expect((await boss.request("$JS.API.STREAM.CREATE.BOX", JSON.stringify(stream))).json()).not.toHaveProperty("error");
  await boss.request("box.x", "an order");
  const reads = [
    "$JS.API.DIRECT.GET.BOX",
    "$JS.API.STREAM.MSG.GET.BOX",
    "$JS.API.CONSUMER.CREATE.BOX",
    "$JS.API.STREAM.CREATE.MINE",
  ];
  for (const subject of [...reads, "box.y", "$JS.ACK.BOX.x", fromWorker("w2"), presenceSubject("w2"), wakeSubject("w2")]) {
    mallory.connection.publish(subject, JSON.stringify({ last_by_subj: "box.x" }), { reply: `${inboxOf("w2")}.order` });
    await until(`the refusal of ${subject}`, () => refused.some((each) => each.includes(`"${subject}"`)));
  }
  for (const subject of [`${inboxOf("w2")}.>`, fromWorker("w2"), wakeSubject("w2"), "$JS.>", ">"]) {
    mallory.connection.subscribe(subject, { callback: () => undefined });
    await until(`the refusal of ${subject}`, () => refused.some((each) => each.includes(`"${subject}"`)));
  }
  // It sends requests that it is allowed to make with another worker's inbox as the reply subject.
  mallory.connection.publish(
    presenceSubject("w1"),
    JSON.stringify({ version: "1", protocol: 1, engine: "", wall: "", running: 0 }),
    {
      reply: `${inboxOf("w2")}.order`,
    },
  );
  const relayed = await sealedBy(mallory, "beat", { lease: randomUUID() });
  mallory.connection.publish(fromWorker("w1"), relayed, { reply: wakeSubject("w2") });
  expect(await mallory.ask("beat", { lease: randomUUID() })).toEqual(LOST);
  await victim.connection.flush();
  expect(heard).toEqual([]);
});

test("on a server that lets everybody say everything, a worker still obeys nothing that the daemon has not signed for it, now", async () => {
  const setting = await start({ isCareless: true });
  const { nats, dispatcher, notes, mallory } = setting;
  // A job that the daemon really gave to the attacker.
  await dispatcher.submit(jobOf("given", { notes }, { pool: "host-w1", ...CALM }));
  const given: Msg[] = [];
  const questions: Msg[] = [];
  mallory.connection.subscribe(`${inboxOf("w1")}.>`, { callback: (_, message) => void given.push(message) });
  const { lease } = await mallory.take();
  const real = await until("the answer that was signed for the attacker", () =>
    given.find((each) => JSON.stringify(claimedHead(each.data)).includes('"given"')),
  );
  const own = signingKeyOf(nats.accessTo("w1").nkeySeed);
  const evil = { ...jobOf("evil", { notes }), protocol: PROTOCOL };
  const attempt = { epoch: 1, attempt: 1, lease: randomUUID(), worker: "w2" };
  let forged = 0;
  const earlier: Uint8Array[] = [];
  mallory.connection.subscribe(`${inboxOf("w2")}.>`, { callback: (_, message) => void earlier.push(message.data) });
  const spying = mallory.connection.subscribe(fromWorker("w2"), {
    callback: (_, message) => {
      questions.push(message);
      const head = claimedHead(message.data) as { nonce: string; from: string; to: string; kind: string };
      const data = head.kind === "next" ? { grant: { job: evil, attempt, earlier: [] } } : { state: "held" };
      const answer = { protocol: PROTOCOL, from: head.to, to: head.from, re: head.nonce, data };
      const answers = [JSON.stringify(answer), JSON.stringify(data), seal(own, answer), real.data, earlier[forged % 3] ?? ""];
      mallory.connection.publish(message.reply!, answers[Math.floor(forged / EACH) % answers.length]);
      forged += 1;
    },
  });
  await mallory.connection.flush();
  const lines = await honest(setting);
  await until("every kind of forgery to have been tried", () => forged > 5 * EACH, 60_000);
  // Messages of its victim sent again, and forged ones in its name.
  for (const { data } of questions.slice(0, 5)) mallory.connection.publish(fromWorker("w2"), data);
  const head = { protocol: PROTOCOL, to: nats.publicKey("daemon"), nonce: "n", session: "s", number: 1_000 };
  for (const from of [nats.publicKey("w2"), nats.publicKey("w1")])
    mallory.connection.publish(fromWorker("w2"), seal(own, { ...head, from, kind: "next", data: { held: [] } }));
  spying.unsubscribe();
  await mallory.connection.flush();
  // Left alone, the victim does what the daemon wants, and has done nothing else.
  await dispatcher.submit(jobOf("good", { notes }, { pool: "host-w2" }));
  expect(await dispatcher.ended("good")).toMatchObject({ state: "done", attempts: [{ worker: "w2" }] });
  // It accepted none of the forgeries, even briefly.
  expect(lines.join("\n")).not.toMatch(/came too late|not in order/);
  expect(readFileSync(notes, "utf8")).toMatch(/^begun good 1 w2\nended good 1 w2\n$/);
  expect(await mallory.ask("end", { lease, outcome: { value: done("mine") } })).toEqual({ state: "accepted" });
});

test("an order that the daemon signed once is none a second time, and one for another worker or another try is left alone", async () => {
  const setting = await start({ isCareless: true });
  const { boss, dispatcher, handsOf, mallory, nats, notes } = setting;
  const old: Uint8Array[] = [];
  mallory.connection.subscribe(`${inboxOf("w2")}.>`, { callback: (_, message) => void old.push(message.data) });
  await mallory.connection.flush();
  const victim = await handsOf("w2");
  await dispatcher.submit(jobOf("j", { notes }, { pool: "host-w2" }));
  const { lease } = await victim.take();
  const order = await until("the order to be heard", () => old.find((each) => JSON.stringify(claimedHead(each)).includes(lease)));
  await dispatcher.close();
  const repeating = mallory.connection.subscribe(fromWorker("w2"), {
    callback: (_, message) => mallory.connection.publish(message.reply!, order),
  });
  await mallory.connection.flush();
  expect(await victim.link.ask("next", { held: [] })).toBe("silent");
  repeating.unsubscribe();
  await mallory.connection.flush();

  // Grants that the daemon itself should never sign.
  const desk = createDesk({ seed: nats.accessTo("daemon").nkeySeed, keyOf: (name) => nats.publicKey(name) });
  const job = { ...jobOf("odd", { notes }), protocol: PROTOCOL };
  const attempt = { epoch: 1, attempt: 1, lease: randomUUID(), worker: "w2" };
  const grants = [{ worker: "w1" }, { epoch: 2 }, { attempt: 2 }].map((odd) => ({
    job,
    attempt: { ...attempt, ...odd },
    earlier: [],
  }));
  let given = 0;
  boss.subscribe(fromWorker("w2"), {
    callback: (_, message) => {
      const heard = desk.open("w2", message);
      if (heard?.kind === "next") heard.answer({ grant: grants[given++ % grants.length] });
      else heard?.answer({ state: "held" });
    },
  });
  await boss.flush();
  const lines = await honest(setting);
  await until("all of them to be given", () => given > grants.length, 60_000);
  expect(lines.join("\n")).toContain("it is for another worker");
  expect(lines.filter((line) => line.includes("its numbers do not agree")).length).toBeGreaterThan(1);
  expect(existsSync(notes)).toBe(false);
});

test("a worker can do nothing with the lease of another: not beat, ask, tell, send, fetch, give back or end it", async () => {
  const { dispatcher, handsOf, mallory } = await start();
  const events: unknown[] = [];
  dispatcher.listen((event) => void events.push(event));
  dispatcher.serve(async () => "a secret");
  const victim = await handsOf("w2");
  await dispatcher.submit(jobOf("theirs", { notes: "none" }, { pool: "host-w2", ...CALM }));
  const { lease } = await victim.take();
  await dispatcher.blobs(lease).put("code", new Uint8Array([1, 2, 3]));
  const usage = { kind: "usage", data: { model: "m", inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, durationMs: 1 } };
  expect(await mallory.ask("next", { held: [lease] })).toEqual({ grant: null });
  expect(await mallory.ask("beat", { lease })).toEqual(LOST);
  expect(await mallory.ask("ask", { lease, number: 1, data: { value: "what is it?" } })).toEqual(LOST);
  expect(await mallory.ask("record", { lease, job: "theirs", seq: 1, body: usage })).toEqual(LOST);
  expect(await mallory.ask("put", { lease, name: "left", at: 0 }, new Uint8Array([9]))).toEqual({ have: 0, lost: true });
  expect(await mallory.fetch(lease, "code")).toHaveLength(0);
  expect(await mallory.ask("release", { lease })).toEqual(REFUSED);
  expect(await mallory.ask("end", { lease, outcome: { value: done("mine") } })).toEqual(REFUSED);
  expect(await mallory.ask("end", { lease, outcome: "nonsense" })).toEqual(REFUSED);
  mallory.link.tell("delta", { lease, seq: 0, data: "mine" });
  // The job's own worker gets answers to all of these.
  expect(await victim.ask("beat", { lease })).toEqual({ state: "held" });
  expect(await victim.ask("ask", { lease, number: 1, data: { value: "what is it?" } })).toMatchObject({ state: "answered" });
  expect(await victim.fetch(lease, "code")).toHaveLength(3);
  expect(events).toEqual([]);
  expect(await victim.ask("end", { lease, outcome: { value: done("theirs") } })).toEqual({ state: "accepted" });
  expect(await dispatcher.ended("theirs")).toMatchObject({ value: "theirs", attempts: [{ worker: "w2" }] });
});

test("what a worker said once cannot be said again by another: a dead one is neither there nor holds its job", async () => {
  const setting = await start({ isCareless: true });
  const { dispatcher, handsOf, mallory, rows } = setting;
  const said: { subject: string; data: Uint8Array }[] = [];
  for (const subject of [fromWorker("w2"), presenceSubject("w2")])
    mallory.connection.subscribe(subject, { callback: (_, message) => void said.push(message) });
  await mallory.connection.flush();
  const victim = await handsOf("w2");
  await dispatcher.submit(jobOf("j", { notes: "none" }));
  const { lease } = await victim.take();
  const presence = { version: "1.0.0", protocol: PROTOCOL, engine: "none", wall: "none", running: 1 };
  await victim.link.ask("presence", presence, { subject: presenceSubject("w2") });
  for (let n = 0; n < 5; n += 1) expect(await victim.ask("beat", { lease })).toEqual({ state: "held" });
  const { seenAt } = rows.find("w2")!;
  expect(seenAt).not.toBeNull();
  await victim.connection.close();
  const copies = await until("all of it to be known", () => said.length > 6 && [...said]);
  const again = setInterval(() => {
    for (const { subject, data } of copies) mallory.connection.publish(subject, data);
    mallory.connection.publish(presenceSubject("w2"), JSON.stringify(presence));
  }, 50);
  onTestFinished(() => clearInterval(again));
  // Its lease expires anyway.
  const taken = await mallory.take();
  expect(taken).toMatchObject({ job: { id: "j" }, attempt: { attempt: 2 }, earlier: [{ worker: "w2", end: "lease_expired" }] });
  await sleep(100);
  expect(rows.find("w2")!.seenAt).toBe(seenAt);
});

test("a worker that is revoked while it works is heard of no more, though its server still lets it in", async () => {
  const { dispatcher, handsOf, mallory, rows } = await start();
  await dispatcher.submit(jobOf("j", { notes: "none" }, CALM));
  const { lease } = await mallory.take();
  rows.remove("w1");
  dispatcher.takeBackFrom("w1");
  const victim = await handsOf("w2");
  const second = await victim.take();
  expect(second).toMatchObject({ job: { id: "j", epoch: 2 }, attempt: { worker: "w2" } });
  expect(await mallory.link.ask("end", { lease, outcome: { value: done("late") } })).toBe("silent");
  expect(await victim.ask("end", { lease: second.lease, outcome: { value: done("theirs") } })).toEqual({ state: "accepted" });
  expect(await dispatcher.ended("j")).toMatchObject({ value: "theirs" });
});

test("numbers that cannot be end the job with a sentence, and a flood of messages keeps nobody else waiting", async () => {
  const { dispatcher, handsOf, mallory } = await start();
  const heard: unknown[] = [];
  dispatcher.listen(({ body }) => void heard.push(body));
  const value = (usage: object) => ({ lease: "", outcome: { value: { ...done("x"), usage: { ...noUsage(), ...usage } } } });
  for (const [at, usage] of [{ calls: -1 }, { inputTokens: 1.5 }, { outputTokens: 1e300 }, { cacheReadTokens: null }].entries()) {
    await dispatcher.submit(jobOf(`bad-${at}`, { notes: "none" }, { pool: "host-w1" }));
    const { lease } = await mallory.take();
    expect(await mallory.ask("end", { ...value(usage), lease })).toEqual(REFUSED);
    const message = expect.stringContaining("its worker reported something that cannot be (end: ");
    expect(await dispatcher.ended(`bad-${at}`)).toMatchObject({ state: "failed", error: { code: "bad_report", message } });
  }
  await dispatcher.submit(jobOf("large", { notes: "none" }, { pool: "host-w1" }));
  const { lease } = await mallory.take();
  expect(await mallory.ask("put", { lease, name: "../../etc/x", at: 0 }, new Uint8Array(10))).toEqual({ have: 10, lost: false });
  expect(await mallory.ask("put", { lease, name: "x", at: 600 * 1024 * 1024 }, new Uint8Array(10))).toEqual({
    have: 0,
    lost: true,
  });
  expect(await dispatcher.ended("large")).toMatchObject({ state: "failed", error: { code: "too_much" } });

  const victim = await handsOf("w2");
  await dispatcher.submit(jobOf("theirs", { notes: "none" }, { pool: "host-w2" }));
  const { lease: theirs } = await victim.take();
  const junk = new Uint8Array(900_000).fill(255);
  for (let n = 0; n < 60; n += 1) mallory.connection.publish(fromWorker("w1"), junk);
  expect(await victim.ask("end", { lease: theirs, outcome: { value: done("theirs") } })).toEqual({ state: "accepted" });
  expect(heard).toEqual([]);
});

/** A genuine message of a worker, to be delivered by another. */
async function sealedBy(
  { link, connection }: Awaited<ReturnType<typeof hostileHands>>,
  kind: string,
  data: object,
): Promise<Uint8Array> {
  let bytes = new Uint8Array();
  const publish = connection.publish.bind(connection);
  await link.ask(kind, data);
  connection.publish = (_subject, payload) => {
    bytes = payload as Uint8Array<ArrayBuffer>;
  };
  link.tell(kind, data);
  connection.publish = publish;
  return bytes;
}
