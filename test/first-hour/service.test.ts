import { existsSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { runIo } from "../support/daemon.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram, PYTHON } from "../support/program.ts";

/** A person's home with characters in its path that a systemd unit must escape. */
const person = () => {
  const home = join(temporaryFolder(), 'a 100% "good" $HOME\\here');
  return { home, env: { HOME: home, IO_HOME: join(home, ".io"), XDG_RUNTIME_DIR: "/nowhere", OPENAI_API_KEY: "sk-secret" } };
};

test("io service install writes a unit that systemd accepts, tells that no session runs, and remove takes it away", async () => {
  await ensureProgram("systemd-analyze", "systemd");
  const { home, env } = person();
  const unit = join(home, ".config", "systemd", "user", "io.service");
  const printed = await runIo(["service", "install", "--print"], home, env);
  expect(printed).toMatchObject({ code: 0, stderr: "" });
  expect(existsSync(unit)).toBe(false);

  const { code, stdout, stderr } = await runIo(["service", "install", "--json"], home, env);
  expect([code, stderr]).toEqual([0, ""]);
  const told = JSON.parse(stdout) as { notes: string[] };
  expect(told).toMatchObject({ kind: "systemd", path: unit, installed: true, current: true, started: false, active: null });
  expect(told.notes.join("\n")).toMatch(/systemd cannot be reached from here[\s\S]*next login[\s\S]*OPENAI_API_KEY/);
  expect(readFileSync(unit, "utf8").trimEnd()).toBe(printed.stdout.trimEnd());
  expect(readFileSync(unit, "utf8")).not.toContain("sk-secret");
  expect(readlinkSync(join(home, ".config", "systemd", "user", "default.target.wants", "io.service"))).toBe("../io.service");
  const checked = await exec("systemd-analyze", ["verify", "--user", "--man=no", unit], {
    env: { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: temporaryFolder() },
  });
  expect([checked.code, checked.output]).toEqual([0, ""]);
  expect((await runIo(["service", "status"], home, env)).stdout).toMatch(/is there; systemd cannot be asked from here\.\n/);

  // Another home has its own service, and the two do not conflict.
  const other = { ...env, IO_HOME: join(home, "Work & play") };
  expect((await runIo(["service", "status"], home, other)).stdout).toContain("No service is installed");
  const { path } = JSON.parse((await runIo(["service", "install", "--json"], home, other)).stdout) as { path: string };
  expect(path).toMatch(/\/systemd\/user\/io-work-play-[0-9a-f]{6}\.service$/);
  expect(readFileSync(path, "utf8")).toContain("Work & play");
  expect(readFileSync(unit, "utf8").trimEnd()).toBe(printed.stdout.trimEnd());
  expect(JSON.parse((await runIo(["service", "remove", "--json"], home, other)).stdout)).toEqual({ path, removed: true });
  const agent = await runIo(["service", "install", "--print", "--json", "--kind", "launchd"], home, other);
  const { path: plist, text } = JSON.parse(agent.stdout) as { path: string; text: string };
  const label = basename(plist, ".plist");
  expect(label).toMatch(/^io-orchestrator\.daemon\.work-play-[0-9a-f]{6}$/);
  expect(text).toContain(`<string>${label}</string>`);

  expect(JSON.parse((await runIo(["service", "remove", "--json"], home, env)).stdout)).toEqual({ path: unit, removed: true });
  expect([existsSync(unit), existsSync(join(home, ".io"))]).toEqual([false, true]);
  expect((await runIo(["service", "status"], home, env)).stdout).toContain("No service is installed");
  expect(await runIo(["service", "remove"], home, env)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("nothing was removed"),
  });
});

test("the command of the unit is the one that was meant, whatever letters its paths have", async () => {
  await ensureProgram("systemd-analyze", "systemd");
  const { home, env } = person();
  await runIo(["service", "install"], home, env);
  const text = readFileSync(join(home, ".config", "systemd", "user", "io.service"), "utf8");
  expect(text).toContain(`Environment="IO_HOME=${home.replaceAll("%", "%%").replace(/["\\]/g, "\\$&")}/.io"`);
  expect(text).toMatch(/ExecStart="\S+node" "\S+\/bin\/io\.js" "--daemon" "--background"/);
});

test("a launchd agent is a property list that says the same", async () => {
  await ensureProgram(PYTHON, "python3");
  const { home, env } = person();
  const { stdout } = await runIo(["service", "install", "--print", "--kind", "launchd"], home, env);
  const read = await exec(
    PYTHON,
    ["-c", "import json,plistlib,sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))"],
    {
      input: stdout,
    },
  );
  expect(JSON.parse(read.stdout)).toMatchObject({
    Label: "io-orchestrator.daemon",
    ProgramArguments: [process.execPath, expect.stringMatching(/bin\/io\.js$/), "--daemon", "--background"],
    EnvironmentVariables: { IO_HOME: join(home, ".io") },
    RunAtLoad: true,
  });
});

test("a folder that cannot be written is a sentence", async () => {
  const { home, env } = person();
  const file = join(temporaryFolder(), "file");
  await exec("touch", [file]);
  const result = await runIo(["service", "install"], home, { ...env, XDG_CONFIG_HOME: file });
  expect(result).toMatchObject({ code: 1, stdout: "" });
  expect(result.stderr).toMatch(/^\S+.* \(ENOTDIR\)\. .*\n$/);
  expect(statSync(file).size).toBe(0);
});
