import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Watch } from "../../src/protocol/watches.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { type ForgeDouble, startForge, TOKEN } from "../support/forge/server.ts";
import { now, triggerOf } from "../support/forge/watched.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { swarm } from "../support/swarm/command.ts";
import { git, makeProject, play, write } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let double: ForgeDouble;
let model: ModelServer;
let home: string;
let daemon: TestDaemon;
/** The engineer's answers wait for this, so that a test can act in the meantime. */
let held: Promise<void> = Promise.resolve();
let asked = 0;
const env = () => ({ ...providerEnvironment(model.url), GH_TOKEN: TOKEN });

beforeAll(async () => {
  double = await startForge(gitHubDialect(), atTheEnd);
  model = await scriptedModel(
    play(({ role, prompt, afterTool, request }) => {
      if (role !== "engineer") return undefined;
      // In a round, the engineer continues in the repository that was reviewed.
      if (
        prompt.includes("Your work is proposed as pull request") ||
        prompt.includes("The project's checks on what you changed")
      ) {
        const library = /^Those of \S+ are in (\S+)\.$/m.exec(prompt)?.[1] ?? "";
        const file = prompt.includes("Say it louder") ? join(library, "library.txt") : "app.txt";
        return afterTool ? { say: "C1: done - changed" } : write(file, "GREETS\n");
      }
      const there = [...prompt.matchAll(/^- (\/\S+) \(of the repository/gm)][1]?.[1] ?? "";
      const count = request.messages.filter((message) => message.role === "tool").length;
      if (!afterTool) {
        asked += 1;
        return held.then(() => write(join(there, "library.txt"), "greets\n"));
      }
      return count === 1 && !prompt.includes("Only there") ? write("app.txt", "greets\n") : undefined;
    }),
    undefined,
    atTheEnd,
  );
  home = temporaryHome({ mode: "full", github: { apiUrl: double.apiUrl, pollMs: 1_000 } }, atTheEnd);
  daemon = await startDaemonProcess(home, env(), atTheEnd);
}, 120_000);
afterAll(end);

function projectAt(repo: string): string {
  const project = makeProject({}, true, temporaryFolder(atTheEnd));
  double.add(repo, project);
  git(project, "remote", "add", "origin", `${double.url}/${repo}.git`);
  return project;
}

const pullsOf = async (run: string) => (await daemon.json<{ items: PullRequest[] }>("GET", `/api/pulls?owner=${run}`)).items;
const settled = (run: string) =>
  until(
    "the pull requests of a run",
    async () => {
      const pulls = await pullsOf(run);
      return pulls.length > 0 && pulls.every(({ state }) => !["planned", "waiting", "publishing"].includes(state)) && pulls;
    },
    120_000,
  );
const bodyIn = (repo: string) => double.repos[repo]!.pulls.map(({ body }) => body);

test("swarm --with --pr ends in a pull request in each repository; they name each other and the order of merging", async () => {
  const [app, library] = [projectAt("acme/app"), projectAt("acme/library")];
  const ended = await swarm(["run", "Greet in both", "--with", library, "--pr", "--json"], app, {
    ...process.env,
    ...env(),
    IO_HOME: home,
  });
  expect({ code: ended.code, stderr: ended.stderr }).toMatchObject({ code: 0 });
  const run = JSON.parse(ended.stdout) as Run;
  expect(run).toMatchObject({ outcome: "approved" });
  const pulls = await settled(run.id);
  expect(pulls.map(({ repo, state, branch }) => ({ repo, state, branch }))).toEqual([
    { repo: "acme/library", state: "open", branch: run.branch },
    { repo: "acme/app", state: "open", branch: run.branch },
  ]);
  expect(double.headOf("acme/library", run.branch!)).toBe(git(library, "rev-parse", run.branch!));
  expect(double.headOf("acme/app", run.branch!)).toBe(git(app, "rev-parse", run.branch!));
  const [ofLibrary, ofApp] = [bodyIn("acme/library"), bodyIn("acme/app")];
  expect(ofLibrary).toHaveLength(1);
  expect(ofApp).toHaveLength(1);
  expect(ofLibrary[0]).toMatch(/## Merge in this order[^#]*1\. this one\n2\. acme\/app#1 \(http/);
  expect(ofApp[0]).toMatch(/## Merge in this order[^#]*1\. acme\/library#1 \(http[^)]*\)\n2\. this one/);
  for (const body of [...ofLibrary, ...ofApp]) {
    expect(body).toContain("`project: ");
    expect(body).not.toContain("The branch was changed after the run");
  }
  expect(double.faults).toEqual([]);
  const before = double.changes().length;
  const again = await runIo(["pr", run.id], home);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(/acme\/library\/pull\/1[\s\S]*acme\/app\/pull\/1/) });
  expect(double.changes().slice(before)).toEqual([]);
}, 240_000);

test("a repository that the work did not need to change gets no pull request", async () => {
  const [app, library] = [projectAt("acme/app-two"), projectAt("acme/library-two")];
  const { id } = await daemon.json<Run>("POST", "/api/runs", {
    projectPath: library,
    with: [app],
    issue: "Only there",
    pull: {},
  });
  const pulls = await settled(id);
  expect(pulls.map(({ projectPath, state }) => ({ projectPath, state }))).toEqual([
    { projectPath: app, state: "open" },
    { projectPath: library, state: "failed" },
  ]);
  expect(pulls[1]?.reason).toContain("nothing to propose");
}, 240_000);

test("a daemon that is killed goes on with both repositories, and opens each pull request once", async () => {
  const [app, library] = [projectAt("acme/app-three"), projectAt("acme/library-three")];
  let release = () => {};
  held = new Promise((go) => {
    release = go;
  });
  const before = asked;
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: app, with: [library], issue: "Greet", pull: {} });
  await until("the engineer is asked", () => asked > before, 120_000);
  await daemon.kill("SIGKILL");
  release();
  daemon = await startDaemonProcess(home, env(), atTheEnd);
  expect((await settled(id)).map(({ repo, state }) => ({ repo, state }))).toEqual([
    { repo: "acme/library-three", state: "open" },
    { repo: "acme/app-three", state: "open" },
  ]);
  const run = await daemon.json<Run>("GET", `/api/runs/${id}?settled=true`);
  expect(run).toMatchObject({ outcome: "approved", repositories: [{ projectPath: library }, { projectPath: app }] });
  expect(double.repos["acme/app-three"]!.pulls).toHaveLength(1);
  expect(double.repos["acme/library-three"]!.pulls).toHaveLength(1);
  expect(bodyIn("acme/library-three")[0]).toContain("acme/app-three#1");
}, 240_000);

test("a review in one repository and a failed check in the other are worked on by the same run, each where it belongs", async () => {
  held = Promise.resolve();
  const [app, library] = [projectAt("acme/app-four"), projectAt("acme/library-four")];
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: app, with: [library], issue: "Greet", pull: {} });
  const [{ branch }] = (await settled(id)) as [PullRequest];
  const heads = () => ["acme/app-four", "acme/library-four"].map((repo) => double.headOf(repo, branch!));
  const before = heads();
  const watched = (project: string) => daemon.json<Watch>("POST", "/api/watches", { project, reviews: true, checks: true });
  const [ofApp, ofLibrary] = [await watched(app), await watched(library)];
  const repo = double.repos["acme/library-four"]!;
  repo.threads.push({ id: 900, pull: 1, review: 1, by: "ted", body: "Say it louder", path: "library.txt", line: 1, at: now() });
  repo.pulls[0]!.at = now();
  const isOver = ({ state }: { state: string }) => ["done", "failed", "ignored"].includes(state);
  const review = await triggerOf(() => daemon, ofLibrary.id, isOver, "the review");
  const reviewed = heads();
  expect(review).toMatchObject({ state: "done", run: id, reason: `done in ${reviewed[1]!.slice(0, 12)}` });
  expect([reviewed[0] === before[0], reviewed[1] === before[1]]).toEqual([true, false]);
  expect(repo.threads.at(-1)).toMatchObject({ replyTo: 900, body: expect.stringContaining(`Done in ${reviewed[1]}.`) });
  const failed = { name: "test", status: "completed", conclusion: "failure", log: "" };
  double.repos["acme/app-four"]!.checks.push({ id: 901, commit: reviewed[0]!, ...failed });
  expect(await triggerOf(() => daemon, ofApp.id, isOver, "the check")).toMatchObject({ state: "done", run: id });
  const mended = heads();
  expect([mended[0] === reviewed[0], mended[1] === reviewed[1]]).toEqual([false, true]);
  for (const name of ["acme/app-four", "acme/library-four"]) expect(double.repos[name]!.pulls).toHaveLength(1);
  for (const watch of [ofApp, ofLibrary]) await daemon.json("DELETE", `/api/watches/${watch.id}`);
}, 300_000);
