import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readDaemonFile } from "../../src/home/daemon-file.ts";
import { isAlive } from "../../src/lib/alive.ts";
import { hasEnvironment } from "../../src/process/processes.ts";
import type { Status } from "../../src/protocol/api.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { cleanEnvironment, endDaemonOf, providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";
import { type Ended, swarm } from "../support/swarm/command.ts";
import { makeProject, play, roleOf, type Script, usual } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const SHORT = "pipeline:\n  - {phase: spec, agent: pm}\n";

async function scene(script?: Script) {
  const home = temporaryHome();
  const model = await scriptedModel(play(script));
  const project = makeProject({ "swarm.config.yaml": SHORT });
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  return { home, model, project, env, at: (...args: string[]) => swarm(args, project, env) };
}
const daemonOf = (home: string) => readDaemonFile(join(home, "daemon.json"));
const servedBy = (home: string, pid: number) => isAlive(pid) && hasEnvironment(pid, "IO_HOME", home) !== false;
const idOf = ({ stderr }: Ended) => /^run (r_\w+)\n/.exec(stderr)?.[1];

test("swarm starts a daemon where none runs; it ends by itself within 30 s of its last work, and leaves nothing behind", {
  timeout: 180_000,
}, async () => {
  const { home, at } = await scene();
  const ran = await at("Greet");
  const endedAt = performance.now();
  expect([ran.code, idOf(ran)]).toEqual([0, expect.any(String)]);
  const { pid } = daemonOf(home)!;
  expect(servedBy(home, pid)).toBe(true);
  expect((await at("show", idOf(ran)!)).stdout).toContain("Issue: Greet");
  expect(daemonOf(home)?.pid).toBe(pid);
  await until("its end", () => !servedBy(home, pid), 60_000);
  expect(performance.now() - endedAt).toBeLessThan(soon(30_000));
  expect([existsSync(join(home, "daemon.json")), readdirSync(join(home, "scratch"))]).toEqual([false, []]);
  // Without a daemon, the command itself briefly owns the home and starts no daemon.
  expect((await at("list")).stdout).toContain(idOf(ran));
  expect(daemonOf(home)).toBeUndefined();
});

test("--detach returns at once, the run goes on to its end, and a daemon that works does not end", {
  timeout: 180_000,
}, async () => {
  let hold = true;
  const { home, model, at } = await scene(({ role }) => (role === "pm" && hold ? { hang: true } : undefined));
  const begun = await at("Greet", "--detach", "--json");
  expect([begun.code, JSON.parse(begun.stdout)]).toMatchObject([0, { id: idOf(begun), status: "running" }]);
  const id = idOf(begun)!;
  const { pid } = daemonOf(home)!;
  await until("the model to be asked", () => model.requests.some((request) => roleOf(request) === "pm"), 60_000);
  const since = performance.now();
  await until("longer than an idle daemon stays", () => performance.now() - since > 12_000, 30_000);
  expect(daemonOf(home)?.pid).toBe(pid);
  expect((await at("cancel", id)).code).toBe(0);
  hold = false;
  expect(await at("resume", id)).toMatchObject({ code: 0, stderr: expect.stringMatching(new RegExp(`^run ${id}\n`)) });
});

test("a daemon that swarm started stays when somebody asks for one, and two commands at once share it", {
  timeout: 180_000,
}, async () => {
  // The second run continues until the end, so that the daemon has work however slow the machine is.
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { home, env, at } = await scene((told) =>
    told.prompt.includes("Greet again") ? released.then(() => usual(told)) : undefined,
  );
  const second = at("Greet again");
  const first = await at("Greet");
  const { pid } = daemonOf(home)!;
  const status = async () => JSON.parse((await runIo(["status", "--json"], home, env)).stdout) as Status;
  expect(await status()).toMatchObject({ pid, endsWhenIdle: true });
  expect(await runIo(["start"], home, env)).toMatchObject({ code: 0, stdout: expect.stringContaining(`pid ${pid}`) });
  expect(await status()).toMatchObject({ pid, endsWhenIdle: false });
  expect(await runIo(["start"], home, env)).toMatchObject({ code: 1, stderr: expect.stringContaining("already runs") });
  release();
  const ended = [first, await second];
  expect([ended.map(({ code }) => code), new Set(ended.map(idOf)).size, daemonOf(home)?.pid]).toEqual([[0, 0], 2, pid]);
  await endDaemonOf(home);
});

test("commands know the daemon and nothing else: they work in a folder that has no database", { timeout: 180_000 }, async () => {
  const { home, model, project } = await scene();
  await startDaemonProcess(home, providerEnvironment(model.url));
  const door = join(temporaryFolder(), "door");
  mkdirSync(door, { mode: 0o700 });
  for (const name of ["daemon.json", "daemon.lock", "token"]) symlinkSync(join(home, name), join(door, name));
  const env = cleanEnvironment(door, providerEnvironment(model.url));
  const at = (...args: string[]) => swarm(args, project, env);
  const ran = await at("Greet", "--json");
  const { id } = JSON.parse(ran.stdout) as Run;
  expect((await at("list")).stdout).toContain(id);
  expect((await at("show", id)).stdout).toContain("Issue: Greet");
  expect(JSON.parse((await at("clean", "--yes", "--json")).stdout)).toMatchObject({ removed: true, items: [{ run: id }] });
  expect((await at("cancel", id)).code).toBe(0);
  for (const args of [["wiki", "list"], ["usage"], ["squad", "list"], ["conversation", "list"], ["approval", "list"]])
    expect([args, (await runIo(args, door, env)).code]).toEqual([args, 0]);
  expect(readdirSync(door).filter((name) => name.startsWith("io.db"))).toEqual([]);
  expect(existsSync(join(home, "runs", id))).toBe(false);
});

test("when the daemon of a run is killed, the command says so and how to go on", { timeout: 180_000 }, async () => {
  let hold = true;
  const { home, model, at } = await scene(({ role }) => (role === "pm" && hold ? { hang: true } : undefined));
  const running = at("Greet");
  await until("the model to be asked", () => model.requests.some((request) => roleOf(request) === "pm"), 60_000);
  process.kill(daemonOf(home)!.pid, "SIGKILL");
  const ended = await running;
  const id = idOf(ended)!;
  expect(ended).toMatchObject({ code: 4, stderr: expect.stringContaining(`swarm resume ${id}`) });
  expect((await at("show", id)).stdout).toContain("interrupted");
  hold = false;
  expect((await at("resume", id)).code).toBe(0);
});
