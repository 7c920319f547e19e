import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { ApiError } from "../../src/protocol/api.ts";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { providerEnvironment, runIo, startDaemonProcess, startIo, type TestDaemon } from "../support/daemon.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { type ForgeDouble, startForge, TOKEN } from "../support/forge/server.ts";
import { type AtTheEnd, collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let double: ForgeDouble;
let model: ModelServer;
let home: string;
let daemon: TestDaemon;
const env = () => ({ ...providerEnvironment(model.url), GH_TOKEN: TOKEN });

beforeAll(async () => {
  double = await startForge(gitHubDialect(), atTheEnd);
  model = await scriptedModel(play(), undefined, atTheEnd);
  home = temporaryHome({ mode: "full", github: { apiUrl: double.apiUrl } }, atTheEnd);
  daemon = await startDaemonProcess(home, env(), atTheEnd);
}, 120_000);
afterAll(end);

/** Creates a project and its repository on the forge. */
function projectAt(
  repo: string,
  files: Record<string, string> = {},
  protect: readonly string[] = [],
  until: AtTheEnd = atTheEnd,
): string {
  const project = makeProject(files, true, temporaryFolder(until));
  double.add(repo, project, undefined, protect);
  git(project, "remote", "add", "origin", `${double.url}/${repo}.git`);
  return project;
}

async function endedRun(projectPath: string, more: object = {}): Promise<Run> {
  const { id } = await daemon.json<Run>("POST", "/api/runs", {
    projectPath,
    issue: "Add a greeting, see #12 @everyone",
    ...more,
  });
  return until(
    "the end of the run",
    async () => {
      const run = await daemon.json<Run>("GET", `/api/runs/${id}?settled=true`);
      return run.status !== "running" && run;
    },
    120_000,
  );
}

const settled = (id: string) =>
  until(
    "the end of a pull request",
    async () => {
      const pull = await daemon.json<PullRequest>("GET", `/api/pulls/${id}`);
      return !["planned", "waiting", "publishing"].includes(pull.state) && pull;
    },
    120_000,
  );

/** The content of all files that a daemon has written, to be searched. */
function written(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return files
    .filter(({ parentPath }) => !parentPath.includes("runtime"))
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "latin1"))
    .join("\n");
}

describe("a run's pull request", () => {
  let project: string;
  let run: Run;
  beforeAll(async () => {
    project = projectAt("acme/widget", { ".github/pull_request_template.md": "## Description\n\n- [ ] I read the guide\n" });
    run = await endedRun(project);
  }, 180_000);

  test("io pr pushes the branch and opens one with what was asked, the evidence and the project's template", async () => {
    expect(run.outcome).toBe("approved");
    const { code, stdout, stderr } = await runIo(["pr", run.id, "--label", "bug", "--json"], home);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const pull = JSON.parse(stdout) as PullRequest;
    expect(pull).toMatchObject({ state: "open", number: 1, draft: false, repo: "acme/widget", base: "main", labels: ["bug"] });
    expect(double.headOf("acme/widget", run.branch!)).toBe(git(project, "rev-parse", run.branch!));
    const [opened] = double.repos["acme/widget"]!.pulls;
    expect(opened).toMatchObject({ head: run.branch, base: "main", labels: ["bug"], by: "io-bot" });
    expect(opened!.body).toMatch(/^## Description\n/);
    expect(opened!.body).toContain("- [ ] I read the guide");
    expect(opened!.body).toContain("For #12.");
    expect(opened!.body).toMatch(/```text\nAdd a greeting, see #12 @everyone\n```/);
    expect(opened!.body).toMatch(/\| `make test` \| 0 \||\| `test` \| `[^`]+` \| 0 \|/);
    expect(opened!.body).toContain("APPROVED".toLowerCase());
    expect(opened!.body).toContain(`<!-- io: ${run.id} -->`);
    expect(double.faults).toEqual([]);
  });

  test("io pr again names the one that is there and sends nothing", async () => {
    const before = double.changes().length;
    const again = await runIo(["pr", run.id], home);
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("/acme/widget/pull/1") });
    expect(double.changes().slice(before)).toEqual([]);
    expect(double.repos["acme/widget"]!.pulls).toHaveLength(1);
  });

  test("new commits on the branch are pushed to the same pull request, and it says that they are not proven", async () => {
    const commit = git(project, "commit-tree", "-p", run.branch!, "-m", "by hand", git(project, "rev-parse", "HEAD^{tree}"));
    git(project, "update-ref", `refs/heads/${run.branch}`, commit);
    const { id } = await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id });
    expect(await settled(id)).toMatchObject({ state: "open", number: 1, commit });
    expect(double.headOf("acme/widget", run.branch!)).toBe(commit);
    expect(double.repos["acme/widget"]!.pulls.map(({ body }) => body.includes("The branch was changed after the run"))).toEqual([
      true,
    ]);
  });

  test("a branch that others pushed to is not forced, and io pr says so with an exit code", async () => {
    const theirs = git(project, "commit-tree", "-m", "theirs", git(project, "rev-parse", "HEAD^{tree}"));
    git(project, "branch", "theirs", theirs);
    git(double.bareOf("acme/widget"), "fetch", "-q", project, `+theirs:${run.branch}`);
    const refused = await runIo(["pr", run.id], home);
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain("did not take the push");
    expect(double.headOf("acme/widget", run.branch!)).toBe(theirs);
  });

  test("a pull request that was merged or closed ends it", async () => {
    Object.assign(double.repos["acme/widget"]!.pulls[0]!, { state: "closed", mergedAt: "2026-01-01T00:00:00Z" });
    const { id } = await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id });
    expect(await settled(id)).toMatchObject({ state: "merged", number: 1 });
  });

  test("the token is in nothing that IO wrote, and a model's commands do not have it", () => {
    expect(written(home)).not.toContain(TOKEN);
    expect(daemon.output()).not.toContain(TOKEN);
    expect(JSON.stringify(model.requests)).not.toContain(TOKEN);
    expect(readFileSync(join(project, ".git", "config"), "utf8")).not.toContain(TOKEN);
  });
});

test("a run that is started with a pull request in mind opens it by itself, as a draft if it is not approved", async () => {
  const project = projectAt("acme/other", { Makefile: "test:\n\t@no-such-program\n" });
  const { id, outcome } = await endedRun(project, { pull: { labels: ["io"] } });
  const pull = await settled(id);
  // The program that its check runs does not exist.
  expect(outcome).toBe("untested");
  expect(pull).toMatchObject({ state: "open", owner: { kind: "run", id }, draft: true, labels: ["io"] });
  expect(double.repos["acme/other"]!.pulls).toMatchObject([{ draft: true }]);
  const refused = await daemon.json<ApiError>("POST", "/api/runs", {
    ...{ projectPath: makeProject({}, true, temporaryFolder(atTheEnd)), issue: "x", pull: {} },
  });
  expect(refused.error.message).toContain("no remote on a forge");
});

test("the settings and hooks of a project do not get the token, whatever they say", async () => {
  const project = projectAt("acme/hostile");
  const run = await endedRun(project);
  const trap = join(temporaryFolder(atTheEnd), "caught");
  const catcher = `!f() { cat >> ${trap}; }; f`;
  git(project, "config", "credential.helper", catcher);
  git(project, "config", `credential.${double.url}.helper`, catcher);
  git(project, "config", "http.proxy", "http://127.0.0.1:9");
  git(project, "config", `url.http://127.0.0.1:9/.insteadOf`, `${double.url}/`);
  writeFileSync(join(project, ".git", "hooks", "pre-push"), `#!/bin/sh\nenv >> ${trap}\ncat >> ${trap}\n`, { mode: 0o755 });
  const { id } = await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id });
  expect(await settled(id)).toMatchObject({ state: "open" });
  expect(() => readFileSync(trap)).toThrow("ENOENT");
});

test("a branch that the forge protects is told in the forge's words, nothing is opened, and it works once it is free", async () => {
  const project = projectAt("acme/protected", {}, ["swarm/*"]);
  const run = await endedRun(project);
  expect(run.branch).toMatch(/^swarm\//);
  const refused = await runIo(["pr", run.id], home);
  expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining("hook declined") });
  expect(refused.stdout).toContain("Nothing was forced");
  expect(double.headOf("acme/protected", run.branch!)).toBeUndefined();
  expect(double.repos["acme/protected"]!.pulls).toEqual([]);
  writeFileSync(join(double.bareOf("acme/protected"), "hooks", "update"), "#!/bin/sh\n", { mode: 0o755 });
  expect((await runIo(["pr", run.id], home)).code).toBe(0);
  expect(double.headOf("acme/protected", run.branch!)).toBe(git(project, "rev-parse", run.branch!));
});

test("from a fork the branch goes to the fork, and the pull request is opened where the fork is from", async () => {
  const project = projectAt("acme/source");
  double.add("mona/source", project);
  git(project, "remote", "rename", "origin", "upstream");
  git(project, "remote", "add", "origin", `${double.url}/mona/source.git`);
  // The token may push only to the fork.
  double.repos["acme/source"]!.permissions["io-bot"] = "read";
  const run = await endedRun(project);
  const { id } = await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id });
  expect(await settled(id)).toMatchObject({ state: "open", repo: "acme/source", number: 1 });
  expect(double.headOf("mona/source", run.branch!)).toBe(git(project, "rev-parse", run.branch!));
  expect(double.headOf("acme/source", run.branch!)).toBeUndefined();
  expect(double.repos["acme/source"]!.pulls).toMatchObject([{ head: run.branch, headRepo: "mona/source", base: "main" }]);
  expect(double.repos["mona/source"]!.pulls).toEqual([]);
  // The same request again finds the existing pull request.
  const again = await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id });
  expect(await settled(again.id)).toMatchObject({ state: "open", number: 1 });
  expect(double.repos["acme/source"]!.pulls).toHaveLength(1);
});

test("a missing right, a wrong token and an archived repository are told as they are", async () => {
  const project = projectAt("acme/closed");
  const run = await endedRun(project);
  const repo = double.repos["acme/closed"]!;
  repo.permissions["io-bot"] = "read";
  const ask = async () => settled((await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id })).id);
  expect(await ask()).toMatchObject({ state: "failed", reason: expect.stringContaining("may not push") });
  repo.permissions["io-bot"] = "write";
  delete double.tokens[TOKEN];
  expect(await ask()).toMatchObject({ state: "failed", reason: expect.stringContaining("does not accept the token") });
  double.tokens[TOKEN] = "io-bot";
  repo.archived = true;
  expect(await ask()).toMatchObject({ state: "failed", reason: expect.stringContaining("archived") });
  repo.archived = false;
  expect(await ask()).toMatchObject({ state: "open", number: 1 });
});

test("in the mode auto a person is asked, the question outlives the daemon, and a denial pushes nothing", async () => {
  const project = projectAt("acme/asked");
  const run = await endedRun(project);
  await daemon.json("PATCH", "/api/config", { mode: "auto" });
  const asking = startIo(["pr", run.id], home);
  const question = async () => {
    const { items } = await daemon.json<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
    return items.find(({ tool }) => tool === "pull_request");
  };
  const first = await until("the question", question, 60_000);
  expect(first).toMatchObject({
    owner: { kind: "run", id: run.id },
    summary: expect.stringContaining(`${double.url.slice(7)}/acme/asked`),
  });
  await until("the hint", () => asking.said.stderr.includes(`io approval allow ${first.id}`), 30_000);
  await daemon.kill("SIGKILL");
  daemon = await startDaemonProcess(home, env(), atTheEnd);
  expect((await until("the question", question, 60_000)).id).toBe(first.id);
  const before = double.changes().length;
  await daemon.json("POST", `/api/approvals/${first.id}`, { decision: "deny", note: "not today" });
  expect(await settled(run.id)).toMatchObject({ state: "denied", reason: "a person said no: not today" });
  expect(double.changes().slice(before)).toEqual([]);
  const allowed = await runIo(["pr", run.id, "--yes", "--draft"], home);
  expect(allowed).toMatchObject({ code: 0, stdout: expect.stringContaining("Draft") });
  await daemon.json("PATCH", "/api/config", { mode: "full" });
}, 300_000);

const CHANGING = [
  ["the push", /^POST git-receive-pack$/],
  ["opening it", /^POST .*\/pulls$/],
  ["its labels", /^POST .*\/labels$/],
] as const;
const KILLS = CHANGING.flatMap(([name, what]) => (["before", "after"] as const).map((moment) => ({ name, what, moment })));

test.each(KILLS)(
  "a daemon killed $moment the forge has taken $name does it exactly once",
  async ({ what, moment }) => {
    const repo = `acme/killed-${KILLS.findIndex((each) => each.what === what && each.moment === moment)}`;
    const project = projectAt(repo);
    const run = await endedRun(project);
    const before = double.changes().length;
    let isHeld = false;
    double.intercept = async (each, when) => {
      if (!what.test(each) || when !== moment || isHeld) return undefined;
      isHeld = true;
      await daemon.kill("SIGKILL");
      return "lose";
    };
    const asked = await daemon.json<PullRequest>("POST", "/api/pulls", { run: run.id, labels: ["bug"] });
    expect(asked).toMatchObject({ state: "waiting" });
    await until("the kill", () => isHeld && daemon.child.signalCode !== null, 120_000);
    double.intercept = () => undefined;
    daemon = await startDaemonProcess(home, env(), atTheEnd);
    expect(await settled(run.id)).toMatchObject({ state: "open", number: 1, labels: ["bug"] });
    expect(double.repos[repo]!.pulls).toMatchObject([{ head: run.branch, labels: ["bug"] }]);
    const sent = double
      .changes()
      .slice(before)
      .filter((each) => what.test(each));
    expect(sent).toHaveLength(moment === "before" ? 2 : 1);
    expect(double.faults).toEqual([]);
  },
  300_000,
);
