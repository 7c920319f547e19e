import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { type ForgeDouble, startForge, TOKEN } from "../support/forge/server.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, ended, squadWith, stepOf, systemOf } from "../support/squads.ts";
import { git, makeProject } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let double: ForgeDouble;
let model: ModelServer;
let home: string;
let daemon: TestDaemon;
/** The agent's calls, made one after another, given the worktrees it was told about. */
let script: (worktrees: string[]) => object[] = () => [];
/** The agent's second step waits for this. */
let held: Promise<void> = Promise.resolve();

const FILES = { Makefile: "test:\n\t@test ! -e broken.txt\n" };
const write = (path: string, content = "greets\n") => ({ tool: "file_ops", args: { operation: "write", path, content } });
const shell = (command: string, working_dir?: string) => ({
  tool: "shell",
  args: { command, ...(working_dir && { working_dir }) },
});
const worktreesIn = (request: ChatRequest) => [...systemOf(request).matchAll(/^- "?(\/[^\s"]+)"? \(of /gm)].map(([, at]) => at!);

beforeAll(async () => {
  double = await startForge(gitHubDialect(), atTheEnd);
  model = await scriptedModel(
    async (request) => {
      if (!characterOf(request)) return { say: "noted" };
      const step = stepOf(request);
      if (step === 1) await held;
      const call = script(worktreesIn(request))[step];
      return call ? { call: [call as never] } : { say: "All of it is done." };
    },
    undefined,
    atTheEnd,
  );
  home = temporaryHome({ mode: "full", github: { apiUrl: double.apiUrl, pollMs: 1_000 } }, atTheEnd);
  daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), GH_TOKEN: TOKEN }, atTheEnd);
}, 120_000);
afterAll(end);

function projectAt(repo: string): string {
  const project = makeProject(FILES, true, temporaryFolder(atTheEnd));
  double.add(repo, project);
  git(project, "remote", "add", "origin", `${double.url}/${repo}.git`);
  return project;
}

async function squadOn(name: string): Promise<{ app: string; library: string }> {
  const [app, library] = [projectAt(`acme/${name}`), projectAt(`acme/${name}-library`)];
  await squadWith(daemon, app, name, ["Engineer"]);
  return { app, library };
}

async function add(slug: string, words: string, ...more: string[]): Promise<Task> {
  const added = await runIo(["task", "add", slug, words, "--json", ...more], home);
  expect({ code: added.code, stderr: added.stderr }).toMatchObject({ code: 0 });
  return JSON.parse(added.stdout) as Task;
}

const both = ([app = "", library = ""]: string[]) => [
  write(join(library, "library.txt")),
  write("app.txt"),
  shell("make test"),
  shell(`cd ${library} && make test`),
  shell(`git -C ${app} status --short`),
];
const pullsOf = async (task: string) => (await daemon.json<{ items: PullRequest[] }>("GET", `/api/pulls?owner=${task}`)).items;

test("io task add --with changes both repositories on branches of one name, and io pr opens pull requests that name each other", async () => {
  const { app, library } = await squadOn("app");
  script = both;
  const { id, with: others } = await add("app", "Greet in both", "--with", library);
  expect(others).toEqual([library]);
  const task = await ended(daemon, id, 60_000);
  const branch = `io/${id}`;
  expect(task).toMatchObject({
    status: "done",
    evidence: {
      ...{ branch, proven: true, filesChanged: ["app.txt"] },
      others: [{ projectPath: library, base: git(library, "rev-parse", "HEAD"), filesChanged: ["library.txt"] }],
    },
  });
  expect(task.evidence?.verdict).toMatch(
    /^done; `make test` last exited 0 \(in \S+\), `cd \S+ && make test` last exited 0 \(in /,
  );
  expect(git(app, "show", `${branch}:app.txt`)).toBe("greets");
  expect(git(library, "show", `${branch}:library.txt`)).toBe("greets");
  expect(git(library, "rev-parse", `${branch}^{tree}`)).toBe(task.evidence?.others?.[0]?.treeAfter);
  for (const folder of [app, library]) {
    expect(git(folder, "status", "--porcelain")).toBe("");
    await until("the worktrees to be gone", () => git(folder, "worktree", "list").split("\n").length === 1);
  }
  const told = systemOf(model.requests.find((request) => worktreesIn(request)[0]?.includes(id))!);
  expect(told).toContain(`(of ${app}, where you stand)`);
  expect(told).toContain(`(of ${library})`);
  expect(told.match(/^## The project/gm)).toHaveLength(2);

  const opened = await runIo(["pr", id], home);
  expect(opened).toMatchObject({ code: 0, stdout: expect.stringMatching(/app-library\/pull\/1[\s\S]*acme\/app\/pull\/1/) });
  expect((await pullsOf(id)).map(({ repo, state, branch: name }) => ({ repo, state, name }))).toEqual([
    { repo: "acme/app-library", state: "open", name: branch },
    { repo: "acme/app", state: "open", name: branch },
  ]);
  for (const [repo, folder] of [
    ["acme/app", app],
    ["acme/app-library", library],
  ] as const)
    expect(double.headOf(repo, branch)).toBe(git(folder, "rev-parse", branch));
  const [ofApp, ofLibrary] = [double.repos["acme/app"]!.pulls, double.repos["acme/app-library"]!.pulls];
  expect(ofLibrary[0]?.body).toMatch(/## Merge in this order[^#]*1\. this one\n2\. acme\/app#1 \(http/);
  expect(ofApp[0]?.body).toMatch(/## Merge in this order[^#]*1\. acme\/app-library#1 \(http[^)]*\)\n2\. this one/);
  for (const [pull, ...more] of [ofApp, ofLibrary]) {
    expect(more).toEqual([]);
    expect(pull).toMatchObject({ draft: false });
    expect(pull?.body).not.toContain("was changed after the task");
  }
  const before = double.changes().length;
  expect(await runIo(["pr", id], home)).toMatchObject({ code: 0 });
  expect(double.changes().slice(before)).toEqual([]);
  const { text, files } = await daemon.json<{ text: string; files: { folder: string }[] }>("GET", `/api/tasks/${id}/diff`);
  expect(files.map(({ folder }) => folder)).toEqual([app, library]);
  expect(text).toContain(`# The repository ${library}:`);
  expect((await runIo(["task", "show", id], home)).stdout).toContain(`in ${library}: library.txt`);
}, 120_000);

test("a repository whose tests were not run is not proven by those of another", async () => {
  const { library } = await squadOn("doubt");
  const verdictOf = async (words: string, calls: typeof script) => {
    script = calls;
    const { evidence } = await ended(daemon, (await add("doubt", words, "--with", library)).id, 60_000);
    return { proven: evidence?.proven, verdict: evidence?.verdict };
  };
  const changed = ([, there = ""]: string[]) => [write(join(there, "library.txt")), write("app.txt")];
  const unproven = (verdict: RegExp) => ({ proven: false, verdict: expect.stringMatching(verdict) });
  const untested = unproven(new RegExp(`^claimed done; no test command was run \\(in ${library}\\)$`));
  expect(await verdictOf("Once", (at) => [...changed(at), shell("make test")])).toEqual(untested);
  expect(await verdictOf("Goes there and back", (at) => [...changed(at), shell(`(cd ${at[1]} && ls); make test`)])).toEqual(
    unproven(/no test command was run/),
  );
  for (const command of ["ls there && make test", "make -C there test", "cd there && make -C $PWD/../task test"])
    expect(await verdictOf(command, (at) => [...changed(at), shell(command.replace("there", at[1] ?? ""))]), command).toEqual(
      unproven(/no test command was run \(in /),
    );
  const fails = (at: string[]) => [
    ...[...changed(at), write(join(at[1]!, "broken.txt")), shell("make test"), shell("make test", at[1])],
    shell("make test"),
  ];
  expect(await verdictOf("Fails there", fails)).toEqual(unproven(/`make test` last exited 2 \(in /));
  const late = (at: string[]) => [
    ...[...changed(at), shell("make test", at[1]), shell("make test")],
    write(join(at[1]!, "library.txt"), "later\n"),
  ];
  expect(await verdictOf("Written later", late)).toEqual(unproven(/library\.txt was written after it \(in /));
  const onlyThere = (at: string[]) => [write(join(at[1]!, "library.txt")), shell("make test", at[1])];
  expect(await verdictOf("Only there", onlyThere)).toMatchObject({ proven: true });
}, 240_000);

test("a repository that the task left as it was has no branch and no pull request", async () => {
  const { app, library } = await squadOn("one");
  script = () => [write("app.txt"), shell("make test")];
  const { id } = await ended(daemon, (await add("one", "Only here", "--with", library)).id, 60_000);
  await until("the branch to be gone", () => git(library, "branch", "--list", "io/*") === "", 10_000);
  expect(await runIo(["pr", id], home)).toMatchObject({ code: 0 });
  expect((await pullsOf(id)).map(({ projectPath, state }) => ({ projectPath, state }))).toEqual([
    { projectPath: app, state: "open" },
  ]);
  expect(double.repos["acme/one"]!.pulls[0]?.body).not.toContain("Merge in this order");

  script = ([, there = ""]) => [write(join(there, "library.txt"))];
  const other = await ended(daemon, (await add("one", "Only there", "--with", library)).id, 60_000);
  expect(await runIo(["pr", other.id], home)).toMatchObject({ stdout: expect.stringContaining(`nothing in ${app}`) });
  expect((await pullsOf(other.id)).map(({ repo, state }) => ({ repo, state }))).toEqual([
    { repo: "acme/one-library", state: "open" },
    { repo: null, state: "failed" },
  ]);
}, 120_000);

test("a daemon that is killed goes on in both worktrees, and what was written before is on the branches", async () => {
  const { app, library } = await squadOn("killed");
  let release = () => {};
  held = new Promise((go) => {
    release = go;
  });
  script = both;
  const { id } = await add("killed", "Greet in both", "--with", library);
  await until(
    "the first file",
    () => model.requests.some((each) => stepOf(each) === 1 && lastUserText(each).includes(id)),
    60_000,
  );
  await daemon.kill("SIGKILL");
  release();
  daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), GH_TOKEN: TOKEN }, atTheEnd);
  const { status, evidence } = await ended(daemon, id, 60_000);
  expect({ status, proven: evidence?.proven }).toEqual({ status: "done", proven: true });
  expect(git(app, "log", "--format=%s", `HEAD..io/${id}`).split("\n")).toHaveLength(1);
  expect(git(library, "log", "--format=%s", `HEAD..io/${id}`).split("\n")).toHaveLength(1);
  expect(git(library, "show", `io/${id}:library.txt`)).toBe("greets");
}, 120_000);

test("its agent writes in all worktrees unasked; commands reach neither the checkouts nor their repositories, and files there are asked for", async () => {
  const { app, library } = await squadOn("apart");
  await daemon.json("PATCH", "/api/config", { mode: "auto" });
  const all = `echo x > ${library}/out.txt; echo x > ${app}/out.txt; echo x > ${library}/.git/hooks/post-checkout; echo end`;
  script = ([, there = ""]) => [
    write(join(there, "library.txt")),
    shell(`echo greets > ${there}/more.txt`),
    shell(all),
    write(join(library, "out.txt")),
  ];
  const { id } = await add("apart", "Write everywhere", "--with", library);
  const asked: Approval[] = [];
  const task = await until(
    "the task to end",
    async () => {
      for (const each of (await daemon.json<{ items: Approval[] }>("GET", "/api/approvals?state=waiting")).items) {
        asked.push(each);
        await daemon.json("POST", `/api/approvals/${each.id}`, { decision: "deny" });
      }
      const found = await daemon.json<Task>("GET", `/api/tasks/${id}`);
      return found.finishedAt !== null && found;
    },
    60_000,
  );
  expect(task.evidence?.others).toMatchObject([{ filesChanged: ["library.txt", "more.txt"] }]);
  expect(asked.map(({ summary }) => summary)).toEqual([expect.stringContaining(`write ${library}/out.txt`)]);
  for (const folder of [app, library]) {
    expect(git(folder, "status", "--porcelain")).toBe("");
    expect(existsSync(join(folder, ".git", "hooks", "post-checkout"))).toBe(false);
  }
  await daemon.json("PATCH", "/api/config", { mode: "full" });
}, 120_000);

test("what cannot be changed together is refused before anything is begun, with what to do", async () => {
  const { app, library } = await squadOn("strict");
  const plain = temporaryFolder(atTheEnd);
  const refusal = async (...names: string[]) => {
    const refused = await runIo(["task", "add", "strict", "Greet", ...names.flatMap((name) => ["--with", name])], home);
    expect(refused.code).toBe(2);
    return refused.stderr;
  };
  expect(await refusal(plain)).toContain("is in no git repository");
  expect(await refusal(app)).toContain("is in the same repository as");
  expect(await refusal(library, library)).toContain("Name it once");
  expect(await refusal(join(plain, "nowhere"))).toContain("there is no such folder");
  git(plain, "init", "-q");
  expect(await refusal(plain)).toContain("has no commit yet");
  expect(await refusal(home)).not.toBe("");
  expect((await daemon.json<{ items: Task[] }>("GET", "/api/tasks?squad=strict")).items).toEqual([]);
  script = () => [];
  const alone = await daemon.json<Task>("POST", "/api/squads/strict/tasks", { task: "Greet" });
  await squadWith(daemon, library, "strict-library", ["Engineer"]);
  const together = await daemon.json<Task>("POST", "/api/squads/strict/tasks", { task: "Greet", with: ["strict-library"] });
  expect(together).toMatchObject({ with: [library] });
  expect(together.id).not.toBe(alone.id);
}, 120_000);
