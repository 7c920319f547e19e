import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isAlive } from "../../src/lib/alive.ts";
import type { Status } from "../../src/protocol/api.ts";
import { runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";

/** A program that has nothing to do with IO. */
function stranger(): number {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child.pid!;
}

const daemonFile = (pid: number, port: number) =>
  JSON.stringify({ pid, host: "127.0.0.1", port, version: "0", startedAt: "2026-01-01T00:00:00.000Z" });

test("a daemon.json with the pid of another program is stale: that program survives a stop, is sent nothing, and blocks no start", async () => {
  const home = temporaryHome();
  const pid = stranger();
  const heard: string[] = [];
  const server = createServer((request, response) => {
    heard.push(`${request.url} ${request.headers.authorization}`);
    response.end("{}");
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => void server.close());
  writeFileSync(join(home, "token"), "a-token-that-is-nobodys-business");
  writeFileSync(join(home, "daemon.json"), daemonFile(pid, (server.address() as AddressInfo).port));

  expect(await runIo(["stop"], home)).toMatchObject({ code: 4, stderr: expect.stringContaining("No daemon runs") });
  expect(await runIo(["status"], home)).toMatchObject({ code: 4 });
  expect([isAlive(pid), heard]).toEqual([true, []]);
  const started = JSON.parse((await runIo(["start", "--json"], home)).stdout) as Status;
  onTestFinished(async () => void (await runIo(["stop"], home)));
  expect(started.pid).not.toBe(pid);
  expect(await runIo(["stop"], home)).toMatchObject({ code: 0 });
  expect(isAlive(pid)).toBe(true);
});

test("while a daemon runs, a daemon.json that names another program is not believed either", async () => {
  const daemon = await startDaemonProcess(temporaryHome());
  const pid = stranger();
  writeFileSync(join(daemon.home, "daemon.json"), daemonFile(pid, 1));
  expect(await runIo(["stop"], daemon.home)).toMatchObject({ code: 4, stderr: expect.stringContaining(`pid ${daemon.pid}`) });
  expect([isAlive(pid), isAlive(daemon.pid)]).toEqual([true, true]);
});

test("a daemon that is killed leaves a daemon.json that a stop does not believe", async () => {
  const daemon = await startDaemonProcess(temporaryHome());
  await daemon.kill("SIGKILL");
  expect(await runIo(["stop"], daemon.home)).toMatchObject({ code: 4 });
});
