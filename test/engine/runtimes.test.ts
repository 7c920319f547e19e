import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { platformName } from "../../src/engine/runtime/path.ts";
import { exec } from "../../src/process/exec.ts";
import type { Status } from "../../src/protocol/api.ts";
import type { DoctorReport } from "../../src/protocol/doctor.ts";
import { runIo, startDaemonProcess } from "../support/daemon.ts";
import { startEngine } from "../support/engine.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { disguisedRuntime, expectedRuntime, installedCopy } from "../support/runtime.ts";

const rehearsal = { IO_ENGINE: "rehearsal" };

/** What the doctor of a copy of IO reports for an empty home. */
async function examined(io: string, home: string): Promise<DoctorReport> {
  const env = { PATH: process.env.PATH, HOME: home, IO_HOME: join(home, "io"), IO_PORT: "0", ...rehearsal };
  return JSON.parse((await exec(process.execPath, [io, "doctor", "--json"], { env })).stdout) as DoctorReport;
}

test("the runtime that the tests were told to use serves in this process and in a daemon, and was tested", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "ok" }));
  const engine = await startEngine(folder, model.url);
  const runtime = { version: expectedRuntime(), tested: true };
  expect(engine.status().runtime).toEqual(runtime);

  const daemon = await startDaemonProcess(temporaryHome(), rehearsal);
  expect((await daemon.json<Status>("GET", "/api/status")).engine.runtime).toEqual(runtime);
  expect((await runIo(["status"], daemon.home)).stdout).toContain(`Runtime: Copilot ${runtime.version}\n`);
  const doctor = await daemon.json<DoctorReport>("GET", "/api/doctor");
  expect(doctor.items).toContainEqual({
    check: "runtime",
    state: "ok",
    found: `the Copilot runtime ${runtime.version} starts`,
  });
});

test("a runtime that IO was never tested with serves, and status and doctor say so", async () => {
  const version = expectedRuntime();
  const untested = version.replace(/^\d+/, (major) => "9".repeat(major.length));
  const env = { ...rehearsal, COPILOT_CLI_PATH: await disguisedRuntime(version, untested) };
  const daemon = await startDaemonProcess(temporaryHome(), env);
  expect((await daemon.json<Status>("GET", "/api/status")).engine.runtime).toEqual({ version: untested, tested: false });
  expect((await runIo(["status"], daemon.home)).stdout).toContain(`Runtime: Copilot ${untested}, which was not tested`);
  expect((await daemon.ask({ text: "hello" })).status).toBe("done");
  const doctor = await daemon.json<DoctorReport>("GET", "/api/doctor");
  expect(doctor.items).toContainEqual({
    check: "runtime",
    state: "warning",
    found: expect.stringMatching(new RegExp(`${untested} was not tested .*1\\.0\\.85, 1\\.0\\.92, 1\\.0\\.102`)),
    remedy: "Unset COPILOT_CLI_PATH to use the runtime that came with IO.",
  });
});

test("a COPILOT_CLI_PATH that leads nowhere is named, with what to do", async () => {
  const home = temporaryHome();
  const missing = join(home, "no-runtime");
  const { code, stderr } = await runIo(["--daemon"], home, { ...rehearsal, COPILOT_CLI_PATH: missing });
  expect(code).not.toBe(0);
  expect(stderr).toContain(`COPILOT_CLI_PATH names ${missing}, which is not there. Set it to a Copilot runtime, or unset it`);
});

test("an installation without a runtime says which package to install", async () => {
  const { ok, items } = await examined(await installedCopy("nothing"), temporaryFolder());
  expect(ok).toBe(false);
  const platform = platformName();
  expect(items.map(({ found }) => found)).toContainEqual(
    expect.stringContaining(`Run "npm install --no-save @github/copilot-${platform}@1.0.102"`),
  );
});

test("an installation with the CLI's package unpacks the runtime at its first start, and only then", async () => {
  const home = temporaryFolder();
  const io = await installedCopy("the CLI's package");
  const unpacked = join(home, "io", "runtime");
  expect(existsSync(unpacked)).toBe(false);
  const runtime = expect.objectContaining({ check: "runtime", state: "ok", found: "the Copilot runtime 1.0.102 starts" });
  expect((await examined(io, home)).items).toContainEqual(runtime);
  const first = statSync(unpacked).mtimeMs;
  expect((await examined(io, home)).items).toContainEqual(runtime);
  expect(statSync(unpacked).mtimeMs).toBe(first);
});

test("an installation that has only the SDK's package runs what is in it", async () => {
  const { items } = await examined(await installedCopy("the SDK's package"), temporaryFolder());
  expect(items).toContainEqual(
    expect.objectContaining({ check: "runtime", state: "ok", found: `the Copilot runtime ${expectedRuntime()} starts` }),
  );
});
