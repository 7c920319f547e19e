import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Status } from "../../src/protocol/api.ts";
import { cleanEnvironment, IO, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { processesOn } from "../support/processes.ts";
import { slowRuntime } from "../support/runtime.ts";
import { soon } from "../support/soon.ts";
import { until } from "../support/until.ts";

const rehearsal = { IO_ENGINE: "rehearsal" };

/** Starts a daemon that may end before it serves requests. Kills whatever is left of it after the test. */
function launch(home: string, extra: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, [IO, "--daemon"], {
    env: cleanEnvironment(home, extra),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  onTestFinished(async () => {
    for (const pid of processesOn(home)) process.kill(pid, "SIGKILL");
    await exited;
  });
  return { child, exited, output: () => output };
}

test("a start that fails half-way ends with a sentence, leaves no process and no lock, and works once it is mended", async () => {
  const home = temporaryHome();
  mkdirSync(join(home, "wiki"));
  writeFileSync(join(home, "wiki", "pages"), "not a folder");
  const { child, exited, output } = launch(home, rehearsal);
  await until("the end of the failed start", () => child.exitCode !== null);
  expect(await exited).toBe(1);
  expect(output()).toMatch(/wiki\/pages.*file where a folder is needed.*Move that file away/);
  expect(output()).not.toMatch(/\n\s+at /);
  expect(processesOn(home)).toEqual([]);
  rmSync(join(home, "wiki", "pages"));
  expect((await startDaemonProcess(home, rehearsal)).pid).toBeGreaterThan(0);
});

test("a stop while the runtime is being started again brings none back, and needs no second signal", async () => {
  const home = temporaryHome();
  const notes = join(home, "starts");
  const daemon = await startDaemonProcess(home, { ...rehearsal, COPILOT_CLI_PATH: await slowRuntime(2_500, notes) });
  const starts = () => readFileSync(notes, "utf8").trim().split("\n").length;
  process.kill(daemon.runtimePid(), "SIGKILL");
  await until("the restart", async () => starts() === 2);
  expect((await daemon.json<Status>("GET", "/api/status")).engine.state).toBe("restarting");
  const told = performance.now();
  await daemon.kill("SIGTERM");
  expect(performance.now() - told).toBeLessThan(soon(2_500));
  expect(daemon.child.exitCode).toBe(0);
  expect(daemon.output()).not.toContain("could not put everything away");
  expect([starts(), processesOn(home)]).toEqual([2, []]);
});

test("a stop while the daemon starts is a clean stop", async () => {
  const home = temporaryHome();
  const notes = join(home, "starts");
  const { child, exited, output } = launch(home, { ...rehearsal, COPILOT_CLI_PATH: await slowRuntime(20_000, notes) });
  await until("the runtime to be started", () => existsSync(notes));
  child.kill("SIGTERM");
  await until("the end", () => child.exitCode !== null || child.signalCode !== null, 6_000);
  expect([await exited, output()]).toEqual([0, expect.stringContaining("IO was stopped before it served.")]);
  expect(existsSync(join(home, "daemon.json"))).toBe(false);
  expect(processesOn(home)).toEqual([]);
  expect((await runIo(["status"], home)).code).toBe(4);
});

test("io restart with a config.json that no start would take says so, and the daemon goes on", async () => {
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, rehearsal);
  for (const [text, words] of [
    ["{ not json", "is not valid JSON"],
    ['{"prot": 1}', "prot"],
    ['{"host": "0.0.0.0"}', "allowRemote"],
  ] as const) {
    writeFileSync(join(home, "config.json"), text);
    const { code, stderr } = await runIo(["restart"], home, rehearsal);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(words) });
    expect(stderr).toContain("The daemon was not stopped");
    expect(await daemon.json<Status>("GET", "/api/status")).toMatchObject({ pid: daemon.pid });
  }
});

test("io restart with a variable that no start would take says so, and the daemon goes on", async () => {
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, rehearsal);
  for (const name of ["IO_MODE", "IO_PORT", "IO_ENGINE"]) {
    const { code, stderr } = await runIo(["restart"], home, { ...rehearsal, [name]: "wild" });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(`${name}: "wild" is`) });
    expect(stderr).toContain("The daemon was not stopped");
    expect(await daemon.json<Status>("GET", "/api/status")).toMatchObject({ pid: daemon.pid });
  }
});
