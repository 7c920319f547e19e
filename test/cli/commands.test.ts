import { chmodSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { DoctorReport } from "../../src/protocol/doctor.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

test("start, send, status, logs, restart and stop do what they say", { timeout: 120_000 }, async () => {
  const home = temporaryHome();
  const started = await runIo(["start", "--json"], home);
  onTestFinished(async () => void (await runIo(["stop"], home)));
  expect(started).toMatchObject({ code: 0 });
  const { pid } = JSON.parse(started.stdout) as { pid: number };
  expect((await runIo(["start"], home)).stderr).toContain(`pid ${pid}`);

  const sent = await runIo(["send", "hello"], home);
  expect(sent).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Hello\..*rehearsal model\n$/s) });
  const piped = await runIo(["send", "-", "--json"], home, {}, "hello there");
  expect(JSON.parse(piped.stdout)).toMatchObject({ text: "hello there", status: "done", source: { channel: "api" } });
  expect(JSON.parse((await runIo(["send", "later", "--no-wait", "--json"], home)).stdout)).toMatchObject({ status: "queued" });

  const status = await runIo(["status", "--json"], home);
  expect(JSON.parse(status.stdout)).toMatchObject({ pid, engine: { kind: "rehearsal", state: "ready" } });
  const told = (await runIo(["status"], home)).stdout;
  expect(told).toMatch(/^IO .* at http.*, pid \d+, up (\d+ min )?\d+ s\nEngine: rehearsal, ready/);
  expect(told).toMatch(/\nMessages: .*done, 0 failed, 0 cancelled\nSquads: 0, with 0 tasks: 0 running, 0 queued\n$/);
  expect(JSON.parse((await runIo(["logs", "--json"], home)).stdout).items[0]).toMatchObject({ message: "IO serves" });

  const restarted = JSON.parse((await runIo(["restart", "--json"], home)).stdout) as { pid: number };
  expect(restarted.pid).not.toBe(pid);
  expect(await runIo(["stop"], home)).toMatchObject({ code: 0 });
  expect(await runIo(["stop"], home)).toMatchObject({ code: 4 });
  expect(await runIo(["status"], home)).toMatchObject({ code: 4 });
  expect(await runIo(["send", "anybody?"], home)).toMatchObject({ code: 4, stdout: "" });
});

test("a log that a crash cut off in the middle of a line is shown, and a number of lines has to be one", async () => {
  const home = temporaryHome();
  mkdirSync(join(home, "logs"));
  const whole = JSON.stringify({ time: "2026-01-01T00:00:00.000Z", level: "info", message: "IO \u001b[2Jserves" });
  writeFileSync(join(home, "logs", "io.log"), `${whole}\n{"time":"2026-01-01T00:00\n${whole}\n`);
  const { code, stdout } = await runIo(["logs"], home);
  expect(code).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "2026-01-01 00:00:00 info  IO �[2Jserves",
    expect.stringMatching(/cut +\{"time":"2026-01-01T00:00$/),
    "2026-01-01 00:00:00 info  IO �[2Jserves",
    "",
  ]);
  expect(await runIo(["logs", "-n", "many"], home)).toMatchObject({ code: 2, stderr: expect.stringContaining("--lines") });
});

test("wrong usage is exit 2, a failed message exit 1, and help is help", async () => {
  const home = temporaryHome();
  expect(await runIo(["frobnicate"], home)).toMatchObject({ code: 2 });
  expect(await runIo(["send"], home)).toMatchObject({ code: 2 });
  expect(await runIo(["send", "--help"], home)).toMatchObject({ code: 0, stdout: expect.stringContaining("--conversation") });
  const { stdout: version } = await runIo(["--version"], home);
  expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const args of [
    ["--version", "--json"],
    ["--json", "--version"],
  ])
    expect(JSON.parse((await runIo(args, home)).stdout)).toEqual({ version: version.trim() });
  const model = await scriptedModel(() => ({ status: 400, message: "no" }));
  await startDaemonProcess(home, providerEnvironment(model.url));
  const failed = await runIo(["send", "hello"], home);
  expect(failed).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^Sorry, I encountered an error:/) });
});

test("a daemon that dies while it is being waited for is reported, and its answer is there after a restart", {
  timeout: 60_000,
}, async () => {
  const home = temporaryHome();
  const model = await scriptedModel((_request, index) => (index === 0 ? { stall: "I was" } : { say: "I am back" }));
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  const sending = runIo(["send", "are you there?"], home);
  await until("the model to be asked", () => model.requests.length === 1);
  await first.kill("SIGKILL");
  expect(await sending).toMatchObject({ code: 4, stderr: expect.stringMatching(/does not answer.*io restart/s) });
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  await until(
    "the answer",
    async () =>
      (await second.json<{ items: { reply: string | null }[] }>("GET", "/api/messages")).items[0]?.reply === "I am back",
  );
});

test("doctor looks at everything, names a remedy for each finding, and mends what it can", { timeout: 60_000 }, async () => {
  const home = temporaryHome();
  chmodSync(join(home, "config.json"), 0o644);
  const model = await scriptedModel((request) =>
    isAfterTool(request) ? { say: "OK" } : { call: [{ tool: "report", args: { word: "ready" } }] },
  );
  const first = JSON.parse((await runIo(["doctor", "--json"], home, providerEnvironment(model.url))).stdout) as DoctorReport;
  expect(first.ok).toBe(false);
  expect(first.items.map(({ check }) => check)).toEqual([
    "node",
    "config",
    "disk",
    "modes",
    "database",
    "port",
    "git",
    "gh",
    "sandbox",
    "runtime",
    "model",
  ]);
  expect(first.items.find(({ check }) => check === "modes")).toMatchObject({
    state: "failed",
    remedy: expect.stringContaining("--fix"),
  });
  for (const { state, remedy } of first.items) if (state !== "ok") expect(remedy).toBeTruthy();
  expect(model.requests).toHaveLength(2);

  const second = await runIo(["doctor", "--fix", "--json"], home, providerEnvironment(model.url));
  expect(second.code).toBe(0);
  expect((statSync(join(home, "config.json")).mode & 0o777).toString(8)).toBe("600");

  model.play(() => ({ status: 401 }));
  const third = await runIo(["doctor", "--json"], home, providerEnvironment(model.url));
  expect(third.code).toBe(1);
  expect((JSON.parse(third.stdout) as DoctorReport).items.at(-1)).toMatchObject({
    check: "model",
    state: "failed",
    found: expect.stringContaining("credentials"),
  });
});
