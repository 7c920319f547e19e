import { mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createSandbox, type SandboxProfile, unwrapped } from "../../src/process/sandbox.ts";
import { createShells, type ShellCommand } from "../../src/process/shells.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram } from "../support/program.ts";
import { until } from "../support/until.ts";

await ensureProgram("bwrap", "bubblewrap");

const ENV = { PATH: "/usr/bin:/bin", HOME: "/nowhere", LC_ALL: "C" };

function ground() {
  const root = realpathSync(temporaryFolder());
  const [home, project, other] = ["io", "project", "other"].map((name) => join(root, name)) as [string, string, string];
  for (const folder of [home, project, other]) mkdirSync(folder);
  const { wrap } = createSandbox({ home, guard: { readOnly: () => [] } });
  const shells = createShells(wrap);
  onTestFinished(shells.close);
  const run = async (argv: ShellCommand["argv"], more: Partial<ShellCommand> = {}) => {
    const profile: SandboxProfile = { closed: true, writable: [project] };
    const result = await shells.run({ argv, cwd: project, place: project, profile, env: ENV, deadlineMs: 20_000, ...more });
    if (!result) throw new Error("the command was left to be run by itself");
    return result;
  };
  const sh = (script: string, more?: Partial<ShellCommand>) => run(["/bin/sh", "-c", script], more);
  /** The start time of the shell that runs a command: it is the second process in its namespace. */
  const begun = async (more?: Partial<ShellCommand>) => (await sh("cut -d' ' -f22 /proc/2/stat", more)).stdout;
  return { shells, home, project, other, run, sh, begun };
}

/** The processes on this machine with a word in their command line. */
function processesWith(word: string): string[] {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return ids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(word);
    } catch {
      // The process has ended in the meantime.
      return false;
    }
  });
}

test("words, variables, input and folder reach the program as they are, and its two voices come back apart", async () => {
  const { run, project } = ground();
  const odd = `it's "so" $(touch x) \`y\` \\ * ~ ;&|\n\ttwo\r\n-n %s é`;
  const inside = join(project, "it's here");
  mkdirSync(inside);
  const script = 'printf "%s|%s|%s|" "$1" "$ODD" "$PWD"; cat; echo bad >&2; exit 7';
  const result = await run(["/bin/sh", "-c", script, "name", odd], { also: { ODD: odd }, input: `${odd}'\n`, cwd: inside });
  expect(result).toMatchObject({ code: 7, ending: "exited", stderr: "bad\n", stdout: `${odd}|${odd}|${inside}|${odd}'\n` });
  expect(result.bytes).toBe(Buffer.byteLength(result.stdout + result.stderr));
  expect(readdirSync(project)).toEqual(["it's here"]);
  // The next command knows nothing of an earlier one.
  expect((await run(["/bin/sh", "-c", 'echo "$ODD$(cat)"'])).stdout).toBe("\n");
});

test("an output of any length is heard to its end, and ends where it ends", async () => {
  const { sh } = ground();
  const long = await sh("head -c 3000000 /dev/zero | tr '\\0' x; printf end; head -c 2000000 /dev/zero >&2", {
    maxOutput: 4_000_000,
  });
  expect([long.stdout.length, long.stdout.endsWith("xend"), long.stderr.length, long.bytes]).toEqual([
    3_000_003,
    true,
    2_000_000,
    5_000_003,
  ]);
  expect((await sh("printf 'no line end'")).stdout).toBe("no line end");
});

test("where an output ends is found wherever it is cut on its way", async () => {
  const { sh } = ground();
  const whole = 65_536;
  for (let length = whole - 42; length <= whole; length += 3) {
    const running = sh(`head -c ${length} /dev/zero | tr '\\0' x; : > done-${length}`, { maxOutput: 200_000 });
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    // So that all of the output is waiting to be read at once.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    const { stdout, code } = await running;
    expect([stdout.length, stdout.replaceAll("x", ""), code]).toEqual([length, "", 0]);
  }
});

test("a shell serves one command after the other, several at once have one each", async () => {
  const { begun, sh } = ground();
  const first = await begun();
  expect(await begun()).toBe(first);
  const many = await Promise.all(
    ["a", "b", "c", "d"].map((word) => sh(`sleep 0.2; echo ${word}; readlink /proc/self/ns/pid >&2`)),
  );
  expect(many.map(({ stdout }) => stdout)).toEqual(["a\n", "b\n", "c\n", "d\n"]);
  expect(new Set(many.map(({ stderr }) => stderr)).size).toBe(4);
});

test("one in which a process was left is not used again, and ends with what was left", async () => {
  const { begun, sh } = ground();
  const first = await begun();
  const word = `left-${process.pid}`;
  const { code } = await sh(`setsid sh -c 'sleep 61; : ${word}' </dev/null >/dev/null 2>&1 &`);
  expect(code).toBe(0);
  expect(await begun()).not.toBe(first);
  await until("the end of what was left", () => processesWith(word).length === 0, 3_000);
});

test("a deadline and a stop end the command with all it started, and the next one is served", async () => {
  const { sh } = ground();
  const word = `stuck-${process.pid}`;
  const stuck = `echo begun; sh -c 'sleep 60; : ${word}' & wait`;
  expect(await sh(stuck, { deadlineMs: 500 })).toMatchObject({ ending: "deadline", code: null, stdout: "begun\n" });
  const abort = new AbortController();
  const running = sh(stuck, { signal: abort.signal });
  await until("the command to be at work", () => processesWith(word).length > 0);
  abort.abort();
  expect(await running).toMatchObject({ ending: "aborted", code: null });
  await until("the end of both", () => processesWith(word).length === 0);
  expect(await sh("echo fine", { signal: abort.signal })).toMatchObject({ ending: "aborted" });
  expect(await sh("echo fine")).toMatchObject({ code: 0, stdout: "fine\n" });
});

test("a command that ends its own shell is a result, and harms no other", async () => {
  const { sh } = ground();
  const [ended, beside] = await Promise.all([sh("kill -9 2; sleep 5"), sh("sleep 0.3; echo fine")]);
  expect([ended.ending, ended.stdout, ended.code === 0]).toEqual(["exited", "", false]);
  expect(beside).toMatchObject({ code: 0, stdout: "fine\n" });
});

test("who is given another wall or another environment is given another shell", async () => {
  const { begun, sh, other } = ground();
  const first = await begun();
  const both: SandboxProfile = { closed: true, writable: [other] };
  expect(await begun({ profile: both })).not.toBe(first);
  expect((await sh(`echo x > ${other}/new`)).stderr).toMatch(/Read-only file system/);
  expect((await sh(`echo x > ${other}/new; cat ${other}/new`, { profile: both })).stdout).toBe("x\n");
  expect((await sh('echo "$MORE"', { env: { ...ENV, MORE: "more" } })).stdout).toBe("more\n");
  expect((await sh('echo "$MORE"')).stdout).toBe("\n");
  expect(await begun()).toBe(first);
});

test("where there is no wall, or no such folder, or words that no program takes, the command is left to be run by itself", async () => {
  const { project, shells } = ground();
  const told: ShellCommand = {
    argv: ["/bin/true"],
    cwd: project,
    place: project,
    profile: { closed: true },
    env: ENV,
    deadlineMs: 5_000,
  };
  expect(await createShells(unwrapped).run(told)).toBeUndefined();
  expect(await shells.run({ ...told, cwd: join(project, "none") })).toBeUndefined();
  expect(await shells.run({ ...told, argv: ["/bin/echo", "a\0b"] })).toBeUndefined();
  expect(await shells.run({ ...told, argv: ["/bin/echo", "x".repeat(200_000)] })).toBeUndefined();
  expect(await shells.run(told)).toMatchObject({ code: 0 });
});

test("those that wait are gone when they are closed, and nobody keeps this process waiting", async () => {
  const { shells, sh, project } = ground();
  await Promise.all([sh("sleep 0.1"), sh("sleep 0.1")]);
  expect(processesWith(project).length).toBeGreaterThan(0);
  shells.close();
  await until("the shells to be gone", () => processesWith(project).length === 0);
  // A shell started after that ends with its command.
  expect(await sh("echo late")).toMatchObject({ code: 0, stdout: "late\n" });
  await until("that one to be gone too", () => processesWith(project).length === 0);
});

test.each([
  [1, 0],
  [9, 1],
])("a wall that names a folder which has gone meanwhile, %i times, is put up anew: exit %i", async (times, code) => {
  const root = realpathSync(temporaryFolder());
  const { wrap } = createSandbox({ home: join(root, "io"), guard: { readOnly: () => [] } });
  let left = times;
  const shells = createShells(async (...asked) => {
    const [bwrap, ...rest] = await wrap(...asked);
    left -= 1;
    return left >= 0 ? [bwrap, "--ro-bind", join(root, "gone"), join(root, "gone"), ...rest] : [bwrap, ...rest];
  });
  onTestFinished(shells.close);
  const told: ShellCommand = {
    argv: ["/bin/echo", "ran"],
    cwd: root,
    place: root,
    profile: { closed: true },
    env: ENV,
    deadlineMs: 20_000,
  };
  expect(await shells.run(told)).toMatchObject({ code, stdout: code === 0 ? "ran\n" : "" });
});
