import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileError } from "../../src/lib/file-errors.ts";
import { exec } from "../../src/process/exec.ts";
import type { DoctorReport } from "../../src/protocol/doctor.ts";
import { cleanEnvironment, IO, providerEnvironment, runIo } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { processesOn } from "../support/processes.ts";
import { slowRuntime } from "../support/runtime.ts";
import { until } from "../support/until.ts";

const rehearsal = { IO_ENGINE: "rehearsal" };

/** A separate file system that is small, or can be made read-only, so that writes fail. */
async function smallDisk(): Promise<{ folder: string; close(): Promise<unknown>; fill(): Promise<unknown> }> {
  const folder = temporaryFolder();
  const mounted = await exec("mount", ["-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", folder]);
  if (mounted.code !== 0) throw new Error(`a small disk is needed for this test: ${mounted.output}`);
  onTestFinished(async () => void (await exec("umount", ["-l", folder])));
  return {
    folder,
    close: () => exec("mount", ["-o", "remount,ro", folder]),
    fill: () => exec("dd", ["if=/dev/zero", `of=${join(folder, "ballast")}`, "bs=4k"]),
  };
}

test("a reader that has seen enough ends the command quietly", async () => {
  const home = temporaryHome();
  mkdirSync(join(home, "logs"));
  const line = `${JSON.stringify({ time: "2026-01-01T00:00:00.000Z", level: "info", message: "x".repeat(200) })}\n`;
  writeFileSync(join(home, "logs", "io.log"), line.repeat(20_000));
  const script = `"$0" "$1" logs -n 20000 | head -1; echo "ended with \${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await exec("bash", ["-c", script, process.execPath, IO], { env: cleanEnvironment(home) });
  expect(stdout).toMatch(/^2026-01-01 00:00:00 info {2}x+\nended with 0\n$/);
  expect(stderr).toBe("");
  const full = await exec("bash", ["-c", `"$0" "$1" logs > /dev/full`, process.execPath, IO], { env: cleanEnvironment(home) });
  expect([full.code, full.stderr]).toEqual([1, expect.stringMatching(/^Standard output cannot be written: the disk is full/)]);
});

test("a full disk, a closed one and a file in the way are sentences that name the path and what to do", async () => {
  const full = await smallDisk();
  const home = join(full.folder, "home");
  await runIo(["setup", "--yes"], home);
  await full.fill();
  const setup = await runIo(["setup"], home, rehearsal, "\n\n\nno\n");
  expect([setup.code, setup.stderr]).toEqual([
    1,
    expect.stringContaining(`${home}/config.json cannot be written: the disk is full (ENOSPC)`),
  ]);

  const closed = await smallDisk();
  await closed.close();
  const blocked = join(temporaryFolder(), "file");
  writeFileSync(blocked, "");
  for (const [place, why] of [
    [join(closed.folder, "home"), "on a disk that cannot be written (EROFS)"],
    [join(blocked, "home"), "file is a file where a folder is needed. Move that file away."],
  ] as const) {
    const started = await runIo(["start"], place, rehearsal);
    expect([place, started.code, started.stderr]).toEqual([place, 1, expect.stringContaining(why)]);
    expect(started.stderr).toMatch(/IO_HOME can name another folder/);
    expect(setup.stderr + started.stderr).not.toMatch(/\n\s+at |Free some space, or set IO_HOME/);
  }
  const denied = Object.assign(new Error("EACCES"), { code: "EACCES", path: "/x/token" });
  expect(fileError(denied)?.message).toBe("/x/token may not be used by you (EACCES). Check its owner and mode.");
});

test("doctor fails a home that cannot be made, with a remedy", { timeout: 60_000 }, async () => {
  const closed = await smallDisk();
  await closed.close();
  const blocked = join(temporaryFolder(), "file");
  writeFileSync(blocked, "");
  for (const home of [join(closed.folder, "deep", "home"), join(blocked, "home"), blocked]) {
    const { code, stdout } = await runIo(["doctor", "--json"], home, rehearsal);
    const { ok, items } = JSON.parse(stdout) as DoctorReport;
    expect([home, code, ok]).toEqual([home, 1, false]);
    expect(items.filter(({ state }) => state === "failed")).toEqual([
      {
        check: "disk",
        state: "failed",
        found: expect.stringMatching(/^the data folder \/.* cannot be (made|used): /),
        remedy: expect.stringContaining("IO_HOME"),
      },
    ]);
  }
});

test("doctor leaves nothing behind in the temporary folder, whatever becomes of it", { timeout: 60_000 }, async () => {
  const home = temporaryHome();
  const scratch = temporaryFolder();
  const notes = join(home, "starts");
  const model = await scriptedModel(() => ({ status: 401 }));
  const left = () => readdirSync(scratch).filter((name) => name.startsWith("io-doctor-"));
  expect((await runIo(["doctor"], home, { ...providerEnvironment(model.url), TMPDIR: scratch })).code).toBe(1);
  expect((await runIo(["doctor"], home, { ...rehearsal, TMPDIR: scratch, COPILOT_CLI_PATH: "/nowhere" })).code).toBe(1);
  expect(left()).toEqual([]);

  const env = cleanEnvironment(home, { ...rehearsal, TMPDIR: scratch, COPILOT_CLI_PATH: await slowRuntime(20_000, notes) });
  const child = spawn(process.execPath, [IO, "doctor"], { env, stdio: "ignore" });
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  onTestFinished(() => void child.kill("SIGKILL"));
  await until("the runtime to be started", () => left().length === 1 && readdirSync(home).includes("starts"));
  child.kill("SIGINT");
  expect(await exited).toBe(130);
  expect([left(), processesOn(home)]).toEqual([[], []]);
});
