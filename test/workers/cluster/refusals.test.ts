import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { createAuthority, fingerprintOf } from "../../../src/workers/cluster/certificate.ts";
import { inviteUrl, proofOf, readInviteUrl } from "../../../src/workers/cluster/invitation.ts";
import { type ClusterAccess, connectOnce } from "../../../src/workers/jobs/nats/connection.ts";
import { createNkey, nkeyOf } from "../../../src/workers/jobs/nats/nkey.ts";
import { startCluster, startWorker, strangersSeed, type TestCluster } from "../../support/cluster.ts";
import { runIo } from "../../support/daemon.ts";
import { temporaryHome } from "../../support/home.ts";
import { soon } from "../../support/soon.ts";
import { until } from "../../support/until.ts";

const cluster = await startCluster(afterAll);
const alpha = await cluster.join("alpha", [], afterAll);

async function connected(access: ClusterAccess): Promise<NatsConnection> {
  const connection = await connectOnce(access, 15_000);
  onTestFinished(() => connection.close());
  return connection;
}

const tryToJoin = (url: string, code: string, ...more: string[]) =>
  runIo(["worker", "join", url, "--code", code, "--name", "stranger", ...more], temporaryHome());

test("a stranger is refused: with no key, with a key of its own, in the clear, and with a worker's name", async () => {
  const access = await cluster.access(strangersSeed(), "stranger");
  await expect(connectOnce(access, 15_000)).rejects.toThrow(/authorization violation/i);
  await expect(connectOnce({ ...access, name: "alpha" }, 15_000)).rejects.toThrow(/authorization violation/i);
  const { connect } = await import("@nats-io/transport-node");
  const { servers, tls } = access;
  await expect(connect({ servers, tls: { ca: tls!.ca }, reconnect: false })).rejects.toThrow(/authorization violation/i);
  await expect(connect({ servers, tls: null, reconnect: false })).rejects.toThrow();
  // A worker also does not trust a server with a certificate from another authority.
  const other = { ...alpha.access, tls: { ca: createAuthority().certificate } };
  await expect(connectOnce(other, 15_000)).rejects.toThrow(/certificate|self.signed/i);
});

test("a worker hears no other, speaks as no other, and has no right to JetStream", async () => {
  const daemon = await daemonOf(cluster);
  const worker = await connected(alpha.access);
  const refused: string[] = [];
  void (async () => {
    for await (const status of worker.status()) if (status.type === "error") refused.push(String(status.error));
  })();
  const denied = (what: string) => until(`the refusal of ${what}`, () => refused.find((each) => each.includes(what)));

  const heard: string[] = [];
  for (const subject of [
    "_INBOX_beta.>",
    "_INBOX.>",
    "io.v2.wake.beta",
    "io.v2.from.*",
    "io.pair.*",
    "io.presence.*",
    "$JS.>",
    ">",
  ]) {
    worker.subscribe(subject, { callback: (error, message) => void (error ?? heard.push(message.subject)) });
    await denied(`"${subject}"`);
  }
  for (const subject of [
    "io.v2.from.beta",
    "io.v2.wake.beta",
    "io.presence.beta",
    "io.pair.x",
    "$JS.API.INFO",
    "$JS.API.STREAM.CREATE.OTHER",
    "$JS.API.DIRECT.GET.OTHER",
    "$JS.ACK.x",
    "$SYS.REQ.USER.INFO",
    "_INBOX_beta.x",
    "_INBOX_daemon.x",
  ]) {
    worker.publish(subject, "{}");
    await denied(`"${subject}"`);
  }
  daemon.publish("_INBOX_beta.secret", "for beta alone");
  daemon.publish("io.v2.wake.beta", "x");
  await daemon.flush();
  await worker.flush();
  expect(heard).toEqual([]);
});

test("a revoked worker is cut off within a second and not let in again, and the others stay", async () => {
  const beta = await cluster.join("beta");
  const watching = await connected(beta.access);
  const closed = watching.closed().then(() => performance.now());
  const before = performance.now();
  await cluster.daemon.json("DELETE", "/api/workers/beta");
  expect((await closed) - before).toBeLessThan(soon(1_000));
  await expect(connectOnce(beta.access, 15_000)).rejects.toThrow(/authorization violation/i);
  expect(await beta.ended).toBe(1);
  expect(beta.output()).toContain("its key was revoked");
  const again = startWorker(beta.home, []);
  expect(await again.ended).toBe(1);
  expect(again.output()).toContain("its key was revoked");
  expect(alpha.child.exitCode).toBeNull();
  const since = new Date().toISOString();
  await until("word from the other", async () => (await cluster.workers()).some(({ seenAt }) => (seenAt ?? "") > since));
});

test("a code that was used, guessed or made up gets the same answer, and five wrong ones end an invitation", async () => {
  const used = await cluster.invite();
  const home = temporaryHome();
  const worker = startWorker(home, [used.url, "--code", used.code, "--name", "gamma"]);
  await until("gamma", async () => (await cluster.workers()).some(({ name }) => name === "gamma"));
  worker.child.kill("SIGTERM");
  const open = await cluster.invite();
  const unknown = inviteUrl({ ...readInviteUrl(open.url), seed: strangersSeed() });
  const answers = [
    await tryToJoin(used.url, used.code),
    await tryToJoin(open.url, "ABCD-EFGH-JKLM"),
    await tryToJoin(unknown, open.code),
  ];
  expect(answers[0]!.stderr).toContain("The invitation was refused");
  for (const answer of answers) expect(answer).toEqual(answers[0]);

  // The first wrong code was already counted above.
  const asker = nkeyOf(readInviteUrl(open.url).seed);
  const connection = await connected(await cluster.access(asker.seed, asker.publicKey));
  for (let wrong = 2; wrong <= 5; wrong += 1)
    expect(await ask(connection, asker.publicKey, request(), "WRONG")).toEqual({ refused: true });
  await connection.closed();
  expect(await tryToJoin(open.url, open.code)).toEqual(answers[0]);
  expect((await cluster.workers()).map(({ name }) => name)).not.toContain("stranger");
});

test("two who use one invitation at the same moment: one is let in", async () => {
  const { url, code } = await cluster.invite();
  const asker = nkeyOf(readInviteUrl(url).seed);
  const connection = await connected(await cluster.access(asker.seed, asker.publicKey));
  const both = await Promise.allSettled(
    ["delta", "epsilon"].map(async (name) =>
      ask(connection, asker.publicKey, request({ name, publicKey: createNkey().publicKey }), code),
    ),
  );
  const names = (await cluster.workers()).map(({ name }) => name).filter((name) => ["delta", "epsilon"].includes(name));
  expect(names).toHaveLength(1);
  expect(both.filter((each) => each.status === "fulfilled" && "proof" in each.value)).toHaveLength(1);
});

test("a name that is taken, a bad name and another protocol are told in a sentence, to who has the code, and the code stays good", async () => {
  const { url, code } = await cluster.invite();
  const taken = await runIo(["worker", "join", url, "--code", code, "--name", "alpha"], temporaryHome());
  expect(taken.stderr).toContain('A worker called "alpha" is there already.');
  const bad = await runIo(["worker", "join", url, "--code", code, "--name", "../etc"], temporaryHome());
  expect(bad).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--name: "../etc" is not allowed: it must be 1 to 40 small'),
  });
  const asker = nkeyOf(readInviteUrl(url).seed);
  const connection = await connected(await cluster.access(asker.seed, asker.publicKey));
  const declined = async (change: object) => {
    const { text } = await ask(connection, asker.publicKey, request(change), code);
    return JSON.parse(String(text)).declined as string;
  };
  expect(await declined({ protocol: 99 })).toContain(
    "speaks version 99 of the protocol between hosts, this daemon version 2. Update the daemon",
  );
  for (const name of ["a.b", "*", ">", "UPPER", "a b", "-a", "x".repeat(41)])
    expect(await declined({ name })).toContain("name: must be 1 to 40 small letters");
  expect(await declined({ name: "daemon" })).toContain("must not be the daemon's own name");
  expect(await declined({ labels: ["host-alpha"] })).toContain('must not begin with "host-"');
  expect(await declined({ publicKey: "UNOKEY" })).toContain("key is none");

  const worker = await connected(alpha.access);
  const said = { version: "9.9.9", protocol: 0, engine: "x", wall: "x", running: 0 };
  const answer = await worker.request("io.presence.alpha", JSON.stringify(said));
  expect(answer.json()).toMatchObject({ state: "refused", reason: expect.stringContaining("Update the worker") });
  expect((await cluster.workers())[0]).toMatchObject({ name: "alpha", version: "0.1.0" });
  // The previous version did not sign anything and did not know the daemon's key.
  expect(await declined({ protocol: 1 })).toContain("Update the worker, then start the worker again.");
  const older = temporaryHome();
  writeFileSync(join(older, "worker.json"), JSON.stringify({ access: alpha.access, labels: [], capacity: 1 }));
  expect((await runIo(["worker", "join"], older)).stderr).toMatch(
    /was written by an earlier version of IO.*io worker revoke alpha.*join again with the new invitation/,
  );
});

test("an invitation for another server is noticed before the code is said", async () => {
  const { url, code } = await cluster.invite();
  const other = inviteUrl({ ...readInviteUrl(url), fingerprint: fingerprintOf(createAuthority().certificate) });
  expect((await tryToJoin(other, code)).stderr).toContain("is not the one that the invitation is for");
  expect((await tryToJoin("tls://127.0.0.1:1/nonsense", code)).stderr).toContain("This is no invitation.");
  const nobody = inviteUrl({ ...readInviteUrl(url), server: "127.0.0.1:1" });
  expect((await tryToJoin(nobody, code)).stderr).toContain("cannot be reached");
});

test("no seed and no code is in a log, an event, the database, the config or what other commands print", async () => {
  const { url, code } = await cluster.invite();
  const daemonSeed = readFileSync(join(cluster.home, "cluster", "daemon.nkey"), "utf8").trim();
  const secrets = [readInviteUrl(url).seed, code, daemonSeed, alpha.access.nkeySeed];
  const events = await cluster.daemon.follow({ lastEventId: "0" });
  const printed = await Promise.all(
    [["status", "--json"], ["cluster", "status", "--json"], ["worker", "list", "--json"], ["logs"]].map((args) =>
      cluster.io(...args),
    ),
  );
  const config = JSON.stringify(await cluster.daemon.json("GET", "/api/config"));
  const logs = readdirSync(join(cluster.home, "logs")).map((name) => readFileSync(join(cluster.home, "logs", name), "latin1"));
  const database = ["io.db", "io.db-wal"].map((name) => readFileSync(join(cluster.home, name), "latin1"));
  const conf = readFileSync(join(cluster.home, "cluster", "nats-server.conf"), "utf8");
  const written = [
    ...printed.map(({ stdout, stderr }) => stdout + stderr),
    ...logs,
    ...database,
    ...[config, conf, cluster.daemon.output(), alpha.output(), JSON.stringify(events.events)],
  ];
  expect(logs.join("")).toContain("a worker was let in");
  for (const secret of secrets) for (const text of written) expect(text).not.toContain(secret);
});

function request(change: object = {}) {
  return { name: "stranger", publicKey: "U", labels: [], capacity: 1, version: "0.1.0", protocol: 2, ...change };
}

async function ask(connection: NatsConnection, invitation: string, said: object, code: string): Promise<Record<string, unknown>> {
  const text = JSON.stringify(said);
  const message = JSON.stringify({ text, proof: proofOf(code, "worker", text) });
  return (await connection.request(`io.pair.${invitation}`, message, { timeout: 10_000 })).json();
}

async function daemonOf({ home, access }: TestCluster): Promise<NatsConnection> {
  const seed = readFileSync(join(home, "cluster", "daemon.nkey"), "utf8").trim();
  return connected(await access(seed, "daemon"));
}
