import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Worker } from "../../../src/protocol/workers.ts";
import { pairingUser } from "../../../src/workers/cluster/rights.ts";
import { createNkey } from "../../../src/workers/jobs/nats/nkey.ts";
import { NATS_SERVER, REHEARSAL, startWorker } from "../../support/cluster.ts";
import { runIo, startDaemonProcess } from "../../support/daemon.ts";
import { freePort } from "../../support/free-port.ts";
import { temporaryFolder, temporaryHome } from "../../support/home.ts";
import { killed } from "../../support/processes.ts";
import { ensureFile } from "../../support/program.ts";
import { until } from "../../support/until.ts";

test("a server of one's own is used as it is: its keeper lets workers in, by what io worker join prints", async () => {
  await ensureFile(NATS_SERVER, "nats-server");
  const folder = temporaryFolder();
  const [daemonKey, inviteKey] = [createNkey(), createNkey()];
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const port = await freePort();
  const users: object[] = [{ nkey: daemonKey.publicKey }, pairingUser(inviteKey.publicKey)];
  const write = () => {
    const jetstream = { store_dir: join(folder, "data") };
    return file("nats.conf", JSON.stringify({ listen: `127.0.0.1:${port}`, jetstream, authorization: { users } }));
  };
  const server = spawn(NATS_SERVER, ["-c", write()], { stdio: "ignore" });
  onTestFinished(() => killed(server));
  const url = `nats://127.0.0.1:${port}`;
  const nkeyFile = file("daemon.nkey", daemonKey.seed);
  const home = temporaryHome({ cluster: { url, nkeyFile, inviteNkeyFile: file("invite.nkey", inviteKey.seed) } });
  const daemon = await startDaemonProcess(home, REHEARSAL);
  const status = () => daemon.json<{ state: string; pid: number | null }>("GET", "/api/cluster");
  await until("the connection", async () => (await status()).state === "running");
  expect(await status()).toMatchObject({ managed: false, url, pid: null });

  const invitation = JSON.parse((await runIo(["worker", "invite", "--json"], home)).stdout) as { url: string; code: string };
  const workerHome = temporaryHome();
  const joined = await runIo(["worker", "join", invitation.url, "--code", invitation.code, "--name", "far"], workerHome);
  expect(joined.stderr).toContain("its keeper has to let this worker in");
  const printed = JSON.parse(joined.stderr.split("\n").find((line) => line.startsWith("{"))!) as object;
  users.push(printed);
  write();
  server.kill("SIGHUP");
  const worker = startWorker(workerHome, []);
  const seen = await until("the worker", async () => {
    if (worker.child.exitCode !== null) throw new Error(worker.output());
    const { items } = await daemon.json<{ items: Worker[] }>("GET", "/api/workers");
    return items.find(({ state }) => state === "ready");
  });
  expect(seen).toMatchObject({ name: "far" });
  await daemon.json("DELETE", "/api/workers/far");
  expect(await worker.ended).toBe(1);
  expect(worker.output()).toContain('There is no worker called "far" any more.');

  await killed(server);
  await until("the loss of it", async () => (await status()).state === "failed");
  expect((await daemon.ask({ text: "hello" })).status).toBe("done");
});
