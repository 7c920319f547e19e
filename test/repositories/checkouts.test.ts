import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { differences, record } from "../support/checkouts/record.ts";
import { git, type Make, put, SHAPES } from "../support/checkouts/shapes.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { ensureProgram } from "../support/program.ts";
import { characterOf, delegate, ended, squadWith, stepOf } from "../support/squads.ts";
import { play, sh } from "../support/swarm/index.ts";
import { drawn, someOf } from "../support/sweep.ts";
import { until } from "../support/until.ts";
import { asUser } from "../support/wall.ts";

await ensureProgram("git-lfs");

/** What agents try in their own trees, by habit or on purpose, followed by their work. */
const WORK = [
  ...["git status", "git add -A", "git stash", "git stash clear", "git commit -q -m mine", "git checkout -q -f precious"],
  ...["git branch -D precious", "git config user.name Agent", "git worktree prune", "git gc -q --prune=now"],
  ...["mkdir -p made", "echo made > made/file.txt"],
].join("; ");
const WAITS = "Wait until you are told to stop";
const AS_THE_USER = { run: (argv: readonly string[]) => ["setpriv", ...asUser("ordinary"), ...argv] };

const { atTheEnd, end } = collectEndings();
let daemon: TestDaemon;
let model: ModelServer;
let userHome: string;
let ground: string;
let settings: Record<string, string>;

/** One daemon of an unprivileged user, whose own git settings would sign, prompt, clean up and run hooks. */
beforeAll(async () => {
  userHome = realpathSync(temporaryFolder(atTheEnd));
  ground = realpathSync(temporaryFolder(atTheEnd));
  const home = realpathSync(temporaryHome({}, atTheEnd));
  put(userHome, {
    ".gitconfig": `[commit]\n\tgpgSign = true\n[core]\n\thooksPath = ${userHome}/hooks\n\teditor = false\n[include]\n\tpath = more\n`,
    more: "[gc]\n\tauto = 1\n[maintenance]\n\tauto = true\n[rerere]\n\tenabled = true\n",
    "hooks/post-index-change": `#!/bin/sh\necho ran > ${userHome}/mark\n`,
  });
  chmodSync(join(userHome, "hooks", "post-index-change"), 0o755);
  // Anyone who uses Git LFS has its filters and hooks.
  const scratch = temporaryFolder(atTheEnd);
  const there = { cwd: scratch, env: { PATH: process.env.PATH, HOME: userHome } };
  for (const words of [
    ["init", "-q"],
    ["lfs", "install"],
  ])
    execFileSync("git", words, { ...there, stdio: "ignore" });
  for (const folder of [userHome, ground, home]) giveToTheUser(folder);
  model = await scriptedModel(
    play(({ role, request, afterTool }) => {
      if (role !== "engineer" && !characterOf(request)) return undefined;
      if (lastUserText(request).includes(WAITS)) return { hang: true };
      return afterTool || stepOf(request) > 0 ? { say: "Done." } : sh(WORK);
    }),
    {},
    atTheEnd,
  );
  const env = { ...providerEnvironment(model.url), HOME: userHome };
  daemon = await startDaemonProcess(home, env, atTheEnd, undefined, { ...AS_THE_USER, reach: async (port) => port });
  settings = record(userHome);
});
afterAll(end);

function giveToTheUser(folder: string): void {
  if (process.getuid?.() === 0) execFileSync("chown", ["-hR", "65534:65534", folder]);
}

async function start(projectPath: string, issue: string): Promise<Run> {
  const run = await daemon.json<Run & { error?: { message: string } }>("POST", "/api/runs", { projectPath, issue });
  if (run.error) throw new Error(run.error.message);
  return run;
}

async function runEnds(id: string): Promise<Run> {
  const look = async () => {
    const run = await daemon.json<Run>("GET", `/api/runs/${id}`);
    return run.status !== "running" && run;
  };
  return until(`run ${id} to end`, look, 90_000);
}

/** Runs on a project and is cancelled while the engineer is being asked. */
async function cancelled(projectPath: string): Promise<Run> {
  const { id } = await start(projectPath, `${WAITS} (${projectPath})`);
  await until("the engineer", () => model.requests.some((each) => lastUserText(each).includes(projectPath)), 90_000);
  await daemon.json("POST", `/api/runs/${id}/cancel`);
  return runEnds(id);
}

async function taskIn(projectPath: string, slug: string): Promise<Task> {
  await squadWith(daemon, projectPath, slug, ["Engineer"]);
  await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree" });
  const task = await ended(daemon, (await delegate(daemon, slug, { task: "Do it" })).id, 90_000);
  if (task.error) throw new Error(task.error.message);
  return task;
}

/** IO's own files: objects, its branches and refs, worktrees in its data folder, and the documents of a run. */
const OWN =
  /\/objects\/|\/(?:logs\/)?refs\/(?:heads\/)?(?:swarm|io)(?:[/-]|$)|\/worktrees(?:$|\/(?:run|stream-|task)\d*(?:$|\/))|\/logs(?:\/refs(?:\/heads)?)?$|\/doc(?:$|\/)/;

const shapes = someOf("checkouts", Object.entries(SHAPES), 2).map(([name, make], index) => ({ name, make, index }));
const records = new Map<string, Record<string, string>>();

/** Changes to the user's files since a checkout was recorded. */
function changedIn(top: string): unknown[] {
  return differences(records.get(top)!, record(top)).filter(([name]) => !OWN.test(name));
}

/** Two at a time: a third would only wait for the processors. */
const lanes = [Promise.resolve(), Promise.resolve()];
function inLane(index: number, work: () => Promise<void>): Promise<void> {
  const mine = lanes[index % 2]!.then(work);
  lanes[index % 2] = mine.catch(() => undefined);
  return mine;
}

describe.concurrent(`a run, a cancelled run and a task leave the user's own as it was (${drawn}), in a checkout with`, () => {
  test.each(shapes)("$name", { timeout: 300_000 }, ({ make, index }) => inLane(index, () => tryOut(make, index)));
});

async function tryOut(make: Make, index: number): Promise<void> {
  const top = join(ground, String(index));
  mkdirSync(top);
  const { project, refused, runs, end: endShape } = await make(top);
  atTheEnd(() => endShape?.());
  giveToTheUser(top);
  records.set(top, record(top));
  const all = await Promise.allSettled([
    start(project, "Do it").then(({ id }) => runEnds(id)),
    cancelled(project),
    taskIn(project, `squad-${index}`),
  ]);
  expect(changedIn(top)).toEqual([]);
  expect(runs?.()).not.toBe(false);
  if (refused) {
    for (const each of all) expect(each).toMatchObject({ reason: { message: expect.stringMatching(refused) } });
    return;
  }
  const [run, stopped, task] = all;
  expect(run).toMatchObject({ value: { status: "done", outcome: "approved" } });
  expect(stopped).toMatchObject({ value: { status: "cancelled" } });
  expect(task).toMatchObject({ value: { status: "done" } });
  const { branch } = (run as PromiseFulfilledResult<Run>).value;
  const { evidence } = (task as PromiseFulfilledResult<Task>).value;
  for (const name of [branch!, evidence!.branch!])
    expect(git(project, "ls-tree", "-r", "--name-only", "--full-tree", name)).toMatch(/made\/file\.txt$/m);
}

test("what IO has left goes by io clean, and the user's own is still as it was", async () => {
  const { code, stderr } = await runIo(["clean", "--unmerged", "--yes"], daemon.home, { HOME: userHome }, "", AS_THE_USER);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
  for (const top of records.keys()) expect(changedIn(top)).toEqual([]);
});

test("nothing of the user's settings was touched, and no hook of theirs ran", () => {
  expect(differences(settings, record(userHome))).toEqual([]);
});
