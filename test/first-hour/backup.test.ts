import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Squad } from "../../src/protocol/squads.ts";
import { cleanEnvironment, IO, providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";
import { killed, processesOn } from "../support/processes.ts";
import { git, makeProject, play, task, write } from "../support/swarm/index.ts";
import { forbiddenIn, openTerminal, uncoloured } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const items = async <T>(daemon: TestDaemon, path: string) => (await daemon.json<{ items: T[] }>("GET", path)).items;

/** A home with a wiki page, and its backup. */
async function backedUp(): Promise<{ home: string; file: string }> {
  const home = temporaryHome({ port: 0 });
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  await daemon.ask({ text: "remember that the door is green" });
  await daemon.kill("SIGTERM");
  const file = join(temporaryFolder(), "home.tar.gz");
  expect(await runIo(["backup", file], home)).toMatchObject({ code: 0 });
  return { home, file };
}

test("a backup of a running daemon, restored elsewhere, has the same squads, pages and conversations, and its run goes on there", async () => {
  let hold = true;
  const script = play(({ role, prompt, afterTool, before }) => {
    if (role === "pm" && prompt.includes("JSON array"))
      return { say: JSON.stringify([task("T1", "First"), task("T2", "Second")]) };
    if (role !== "engineer") return undefined;
    const id = /## Your task\n(\w+)/.exec(prompt)?.[1] ?? "fix";
    if (!afterTool) return write(`${id}.txt`, `${id}\n`);
    return hold && before < 4 ? { hang: true } : { say: "Done." };
  });
  const model = await scriptedModel((request) =>
    JSON.stringify(request.messages).includes("[via api]") ? { say: "Good day to you." } : script(request),
  );
  const project = makeProject({
    "long/name/of/a/folder/that/is/longer/than/the/old/fields/of/an/archive/can/hold/für-alle-🚀/file.txt": "x\n",
  });
  const first = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  await first.ask({ text: "good day" });
  const { updatedAt } = await first.json<{ updatedAt: string }>("PUT", "/api/wiki/pages/general/doors", {
    content: "# Doors\n\nThe door is green. 🚪\n",
  });
  await first.json("POST", "/api/squads", { name: "doors", slug: "doors", projectPath: project });
  await first.json("POST", "/api/squads/doors/agents", { roleTitle: "Painter", charter: "Paints." });
  await first.json("POST", "/api/squads/doors/decisions", { decision: "Green it is" });
  const { id } = await first.json<Run>("POST", "/api/runs", { projectPath: project, issue: "Do two things" });
  const streams = join(first.home, "runs", id, "worktrees");
  await until(
    "both streams to have written",
    () => ["1", "2"].every((n) => existsSync(join(streams, `stream-${n}`, `T${n}.txt`))),
    60_000,
  );

  const file = join(temporaryFolder(), "backup.tar.gz");
  const made = await runIo(["backup", file, "--json"], first.home);
  expect(made.stderr).toBe("");
  expect(JSON.parse(made.stdout)).toMatchObject({ file, home: first.home, bytes: statSync(file).size });
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  expect(readdirSync(join(first.home, "scratch"))).toEqual([]);
  expect(await first.json("GET", "/api/health")).toEqual({ status: "ok" });
  await first.kill("SIGKILL");

  const home = join(temporaryFolder(), "elsewhere");
  expect(await runIo(["restore", file], home)).toMatchObject({ code: 0, stdout: expect.stringContaining(home) });
  // The old place is not needed any more.
  rmSync(first.home, { recursive: true, force: true });
  hold = false;
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  expect(await items<Squad>(second, "/api/squads")).toMatchObject([{ slug: "doors", projectPath: project }]);
  expect(await items(second, "/api/squads/doors/agents")).toMatchObject([{ roleTitle: "Painter" }]);
  expect(await items(second, "/api/squads/doors/decisions")).toMatchObject([{ decision: "Green it is" }]);
  expect(await second.json("GET", "/api/wiki/pages/general/doors")).toMatchObject({
    content: expect.stringContaining("green. 🚪"),
    updatedAt,
  });
  expect(await items(second, "/api/wiki/search?q=door%20is%20green")).toHaveLength(1);
  expect(await items<Message>(second, "/api/messages")).toMatchObject([{ text: "good day", reply: "Good day to you." }]);
  const run = await until(
    "the run to end there",
    async () => {
      const now = await second.json<Run>("GET", `/api/runs/${id}`);
      return now.finishedAt === null ? undefined : now;
    },
    90_000,
  );
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(git(project, "show", `${run.branch}:T1.txt`)).toBe("T1");
  expect(git(project, "show", `${run.branch}:T2.txt`)).toBe("T2");
  expect((await second.ask({ text: "good day again" })).reply).toBe("Good day to you.");
  await second.kill("SIGTERM");
});

test("a backup can be looked at with tar, holds the secrets, and says so", async () => {
  const { home, file } = await backedUp();
  const listed = spawnSync("tar", ["tzf", file], { encoding: "utf8" });
  expect(listed.status).toBe(0);
  for (const name of ["config.json", "token", "io.db", "manifest.json", "wiki/pages/general/the-door-is-green.md"])
    expect(listed.stdout).toContain(`io-backup/${name}\n`);
  expect(listed.stdout).not.toMatch(/daemon\.(?:json|lock)|io\.db-wal|index\.db/);
  const token = spawnSync("tar", ["xzOf", file, "io-backup/token"], { encoding: "utf8" });
  expect(token.stdout).toBe(readFileSync(join(home, "token"), "utf8"));
  const again = await runIo(["backup", file], home);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("add --yes") });
  expect((await runIo(["backup", file, "--yes"], home)).stdout).toContain("keys, tokens and everything that was said");
  expect(await runIo(["backup", join(home, "inside.tar.gz")], home)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("lies in the data folder"),
  });
  expect(await runIo(["backup", "/no/such/folder/x.tar.gz"], home)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is not there \(ENOENT\)/),
  });
});

test("a home that is in use or not empty is refused, and with --yes it is put aside", async () => {
  const { file } = await backedUp();
  const other = await startDaemonProcess(temporaryHome({ port: 4000 }), { IO_ENGINE: "rehearsal" });
  const inUse = await runIo(["restore", file, "--yes"], other.home);
  expect(inUse).toMatchObject({ code: 1, stderr: expect.stringMatching(/Stop it first with ".*stop"/) });
  await other.kill("SIGTERM");
  expect(await runIo(["restore", file], other.home)).toMatchObject({ code: 2, stderr: expect.stringContaining("is not empty") });
  const config = join(other.home, "config.json");
  expect(JSON.parse(readFileSync(config, "utf8"))).toEqual({ port: 4000 });
  const { stdout } = await runIo(["restore", file, "--yes", "--json"], other.home);
  const { aside } = JSON.parse(stdout) as { aside: string };
  expect(JSON.parse(readFileSync(config, "utf8"))).toEqual({ port: 0 });
  expect(JSON.parse(readFileSync(join(aside, "config.json"), "utf8"))).toEqual({ port: 4000 });
  rmSync(aside, { recursive: true });
});

test("a file that is cut, changed or something else is refused and leaves nothing behind", async () => {
  const { file } = await backedUp();
  const parent = temporaryFolder();
  const home = join(parent, "home");
  const bad = join(parent, "bad.tar.gz");
  const whole = readFileSync(file);
  const tar = gunzipSync(whole);
  const changed = Buffer.from(tar);
  const at = changed.indexOf("the door is green");
  changed.write("the door is black", at);
  const outside = Buffer.from(tar);
  outside.write("io-backup/../../x", outside.indexOf("io-backup/config.json"));
  const shorter = tar.subarray(0, tar.lastIndexOf(Buffer.from("io-backup/manifest.json")));
  const cases: Record<string, Buffer> = {
    cut: whole.subarray(0, whole.length - 40),
    "a byte changed": Buffer.concat([whole.subarray(0, 400), Buffer.from([whole[400]! ^ 1]), whole.subarray(401)]),
    "a page changed and packed again": gzipSync(changed),
    "a name that leads outside": gzipSync(outside),
    "without its end": gzipSync(Buffer.concat([shorter, Buffer.alloc(1024)])),
    "no archive": Buffer.from("hello"),
    empty: Buffer.alloc(0),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    writeFileSync(bad, bytes);
    const result = await runIo(["restore", bad], home);
    expect([name, result.code, result.stderr]).toEqual([
      name,
      1,
      expect.stringMatching(/bad\.tar\.gz: It is cut short, was changed, or is no backup/),
    ]);
    expect([name, readdirSync(parent)]).toEqual([name, ["bad.tar.gz"]]);
  }
  expect(await runIo(["restore", join(parent, "none")], home)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no such file"),
  });
});

/** Makes a backup in a terminal that takes long enough to show progress. */
async function showsProgress(home: string, file: string): Promise<void> {
  const command = ["sh", "-c", `"${process.execPath}" "${IO}" backup "${file}"; echo "exit $?"; sleep 100`];
  const terminal = await openTerminal(temporaryFolder(), command, cleanEnvironment(home));
  await terminal.sees("exit 0", 60_000);
  const bytes = uncoloured(terminal.bytes());
  // Steps that take only a moment are not shown.
  expect(bytes).toMatch(/packing \d+ files, [\d.]+ \w?B {2}[\d.]+ s/);
  expect(forbiddenIn(terminal.bytes())).toEqual([]);
  expect((await terminal.screen()).replaceAll("\n", "")).toMatch(/^\S+large\.tar\.gz holds all of/);
}

test("a restore that is killed at any of its steps leaves the old home or the new one, never parts of both: the next command sees to it and says so", async () => {
  const { file } = await backedUp();
  const dies = join(packageRoot, "test", "support", "swarm", "dies.mjs");
  const parent = temporaryFolder();
  const home = join(parent, "home");
  const PAGE = join("wiki", "pages", "general", "the-door-is-green.md");
  const dieBefore = (step: number) => {
    rmSync(parent, { recursive: true });
    mkdirSync(join(home, "files"), { recursive: true });
    writeFileSync(join(home, "config.json"), '{"port": 4000}');
    writeFileSync(join(home, "files", "old.txt"), "old");
    const env = { DIES_BEFORE: String(step), DIES_WITHIN: home, NODE_OPTIONS: `--import=${dies}` };
    return runIo(["restore", file, "--yes"], home, env);
  };
  const isWhole = (folder: string, which: "old" | "new") =>
    readFileSync(join(folder, "config.json"), "utf8").includes("4000") === (which === "old") &&
    existsSync(join(folder, "files", "old.txt")) === (which === "old") &&
    existsSync(join(folder, PAGE)) === (which === "new");
  const seen = new Set<string>();
  for (let step = 1; ; step += 1) {
    const { code } = await dieBefore(step);
    if (code === 0) break;
    expect([step, code, existsSync(home)]).toEqual([step, null, true]);
    const wasMoving = existsSync(join(home, ".restore", "progress.json"));
    const { stderr } = await runIo(["--version"], home);
    const beside = readdirSync(parent).filter((name) => name !== "home");
    const which = existsSync(join(home, PAGE)) ? "new" : "old";
    expect([step, isWhole(home, which)]).toEqual([step, true]);
    if (wasMoving) {
      expect([step, which, stderr]).toEqual([
        step,
        "new",
        expect.stringMatching(/interrupted at its last step; that is done now/),
      ]);
      expect(stderr).toContain(beside[0]);
      expect(existsSync(join(home, ".restore"))).toBe(false);
      if (!seen.has("new, moving")) expect((await runIo(["--version"], home)).stderr).not.toContain("restore");
    }
    if (which === "new") expect([step, beside.length, isWhole(join(parent, beside[0]!), "old")]).toEqual([step, 1, true]);
    seen.add(`${which}, ${wasMoving ? "moving" : "before or after"}`);
    // The next restore removes what the killed one left behind.
    if (step === 1) {
      expect(await runIo(["restore", file, "--yes"], home)).toMatchObject({ code: 0 });
      expect(existsSync(join(home, ".restore"))).toBe(false);
    }
  }
  expect([...seen]).toEqual(expect.arrayContaining(["old, before or after", "new, moving"]));

  // A restore that is still at that step is not interfered with.
  for (let step = 1; ; step += 1) {
    await dieBefore(step);
    if (existsSync(join(home, ".restore", "progress.json"))) break;
  }
  const note = join(home, ".restore", "progress.json");
  writeFileSync(note, readFileSync(note, "utf8").replace(/"owner":\d+/, `"owner":${process.pid}`));
  expect(await runIo(["start"], home)).toMatchObject({ code: 1, stderr: expect.stringMatching(/A restore \(pid \d+\) is just/) });
}, 300_000);

/** Everything that a restore killed at its last step has ever left beside a data folder, as far as a command can fake it. */
const plantFor = (home: string) =>
  [
    `umask 077; mkdir ${home}.restored-999999 ${home}.restoring-999999 ${home}.before-20260101T000000 ${home}.before-20260101T000000/.restore`,
    `echo '{"port": 4711}' | tee ${home}.restored-999999/config.json ${home}.restoring-999999/config.json > ${home}.before-20260101T000000/config.json`,
    `printf '{"home":"%s","restored":"%s"}' $(stat -c %i ${home}.before-20260101T000000) $(stat -c %i ${home}.restored-999999) > ${home}.before-20260101T000000/replaced-by.json`,
    `printf '{"owner":999999,"restored":"999999","aside":"${home}.before-20260101T000000","asideId":"%s","step":"in"}' $(stat -c %d:%i ${home}.before-20260101T000000) > ${home}.before-20260101T000000/.restore/progress.json`,
  ].join("\n");

test("nothing that a command, or anybody, puts beside a data folder takes its place when that is deleted, also after a kill -9", async () => {
  const parent = temporaryFolder();
  const home = join(parent, "home");
  const model = await scriptedModel((request) =>
    isAfterTool(request) ? { say: "Planted." } : { call: [{ tool: "shell", args: { command: plantFor(home) } }] },
  );
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, "config.json"), '{"port": 0}');
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  expect(await daemon.ask({ text: "plant it" })).toMatchObject({ status: "done" });
  expect(existsSync(`${home}.before-20260101T000000/replaced-by.json`)).toBe(true);
  await daemon.kill("SIGKILL");
  await until("all of it to be gone", () => processesOn(home).length === 0);
  rmSync(home, { recursive: true });
  const { stderr } = await runIo(["status"], home);
  expect([stderr.includes("restore"), existsSync(join(home, "config.json"))]).toEqual([false, false]);
});

test("a restore that is killed leaves the home as it was, and the next one cleans up", async () => {
  const { home: source } = await backedUp();
  mkdirSync(join(source, "files"));
  for (let number = 0; number < 40; number++) writeFileSync(join(source, "files", `${number}`), Buffer.alloc(2_000_000, number));
  const file = join(temporaryFolder(), "large.tar.gz");
  await showsProgress(source, file);
  const besides = (home: string) => readdirSync(dirname(home)).filter((name) => name.startsWith(`${basename(home)}.restor`));
  /** The home of a restore that was killed halfway. Retries, because on a busy machine a restore may finish before the kill. */
  async function killedHalfWay(): Promise<string> {
    for (;;) {
      const home = join(temporaryFolder(), "home");
      const child = spawn(process.execPath, [IO, "restore", file], { env: cleanEnvironment(home), stdio: "ignore" });
      const isHalfWay = () => besides(home).some((name) => existsSync(join(dirname(home), name, "files", "1")));
      await until("the restore to be half-way", () => isHalfWay() || existsSync(home));
      await killed(child);
      if (!existsSync(home)) return home;
    }
  }
  const home = await killedHalfWay();
  const beside = () => besides(home);
  expect(beside()).toHaveLength(1);
  expect(await runIo(["restore", file], home)).toMatchObject({ code: 0 });
  expect([beside(), readFileSync(join(home, "files", "39")).length]).toEqual([[], 2_000_000]);
});

test("a backup that cannot be written leaves the earlier one as it was", async () => {
  const { home, file } = await backedUp();
  const before = readFileSync(file);
  const full = spawnSync("sh", ["-c", `ulimit -f 4; "${process.execPath}" "${IO}" backup "${file}" --yes`], {
    env: cleanEnvironment(home),
    encoding: "utf8",
  });
  expect(full.status).not.toBe(0);
  expect(full.stderr).not.toMatch(/ at .*\.[jt]s:\d/);
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(dirname(file))).toEqual([basename(file)]);
  truncateSync(file, 0);
});
