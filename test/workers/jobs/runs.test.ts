import { afterAll, beforeAll, expect, test } from "vitest";
import type { Act, ChatRequest } from "../../../src/engine/rehearsal/wire.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import type { Task } from "../../../src/protocol/squads.ts";
import type { TestDaemon } from "../../support/daemon.ts";
import { type Hosts, startHosts } from "../../support/dispatch/away.ts";
import { collectEndings } from "../../support/home.ts";
import { scriptedModel } from "../../support/model.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf } from "../../support/squads.ts";
import { git, play, roleOf, sh, task } from "../../support/swarm/index.ts";
import { both, engineer, split, YAML } from "../../support/swarm/streams.ts";
import { until } from "../../support/until.ts";

const FOUR = split(task("T1", "One"), task("T2", "Two"), task("T3", "Three"), task("T4", "Four"));
/** One test fails before and after the run, amid more output than a worker sends. */
const RED = "seq 9000; echo 1..2; echo ok 1 - a; echo not ok 2 - b; seq 9000; exit 1";
const PIPELINE = `${YAML("", `checks: ["test -f README.md && ls", "! grep -q broken *.txt", "${RED}"]`)}    qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED}\n`;
const script = play(
  both(
    FOUR,
    engineer((id) => (id === "T4" ? sh("echo four > T4.txt; pwd") : undefined)),
  ),
);

const NOTED = { say: "noted" };
const ROLES = new Set(["pm", "engineer", "eng-code-reviewer", "tester"]);
const isAgent = (request: ChatRequest) => ROLES.has(roleOf(request));

async function runOn(daemon: TestDaemon, folder: string): Promise<Run> {
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: folder, issue: "Do it" });
  return until(
    `the end of ${id}`,
    async () => {
      const run = await daemon.json<Run>("GET", `/api/runs/${id}`);
      return run.status === "running" ? undefined : run;
    },
    240_000,
  );
}

/** The result of a run without its own names and times, and independent of the order in which streams were merged. */
function comparable(run: Run, folder: string) {
  const tree = git(folder, "rev-parse", `${run.branch}^{tree}`);
  const trees = new Set([tree, ...run.loops.map(({ approved }) => approved)]);
  const evidence = run.evidence.filter((each) => trees.has(each.tree));
  return {
    ...{ outcome: run.outcome, reason: run.reason, tree },
    streams: run.streams.map(({ number, status, merged }) => [number, status, merged]),
    loops: run.loops.map(({ key, outcome, reviews, approved }) => [key, outcome, reviews, approved].join()).sort(),
    evidence: evidence
      .map(({ name, exitCode, ending, tree: of, tail, verdict, why }) => [name, exitCode, ending, of, tail, verdict, why].join())
      .sort(),
    steps: run.steps
      .map(({ key, state, verdict }) => [key.replace(/^run\/checks\/.*/, "run/checks"), state, verdict].join())
      .sort(),
  };
}

/** What squad agents do: write a file, read it, log a decision, write a page. */
function inSquads(request: ChatRequest): Act {
  const number = /Write file (\d+)/.exec(JSON.stringify(request.messages.findLast(({ role }) => role === "user")))?.[1] ?? "";
  const step = stepOf(request);
  if (step === 0)
    return { call: [{ tool: "file_ops", args: { operation: "write", path: `${number}.txt`, content: `${number}\n` } }] };
  if (step === 1) return sh(`cat ${number}.txt`);
  if (step === 2) return { call: [{ tool: "squad_log_decision", args: { decision: `File ${number} stays` } }] };
  if (step === 3)
    return {
      call: [{ tool: "wiki_write", args: { path: `pages/file-${number}.md`, content: `# File ${number}\n\nIt is there.\n` } }],
    };
  return { say: `Wrote ${number}.` };
}

const { atTheEnd, end } = collectEndings();
afterAll(end);
let hosts: Hosts;
beforeAll(async () => {
  const answer = (request: ChatRequest) =>
    characterOf(request) ? inSquads(request) : isAgent(request) ? script(request) : NOTED;
  const model = await scriptedModel(answer, undefined, atTheEnd);
  hosts = await startHosts(model.url, { names: ["w1", "w2", "w3"], atTheEnd });
}, 150_000);

test("a run with four streams over three workers comes to the same branch and evidence as on one machine", async () => {
  const { daemon, workers } = hosts;
  const files = { "swarm.config.yaml": PIPELINE, "README.md": "A project.\n" };
  const [here, there] = [project(files), project(files)];
  await daemon.json("PATCH", "/api/config", { dispatch: "local" });
  const alone = await runOn(daemon, here);
  await daemon.json("PATCH", "/api/config", { dispatch: "workers" });
  const away = await runOn(daemon, there);
  expect(comparable(away, there)).toEqual(comparable(alone, here));
  expect(away.outcome).toBe("approved");
  expect(away.evidence.map(({ verdict }) => verdict)).toContain("as before");
  const steps = away.steps.filter(({ kind }) => kind === "call" || kind === "checks");
  expect(steps.filter(({ worker }) => worker === null).map(({ key }) => key)).toEqual([]);
  expect(new Set(steps.map(({ worker }) => worker)).size).toBeGreaterThan(1);
  // Each engineer stays on one host, because its session is there.
  for (const stream of [1, 2, 3, 4]) {
    const own = steps.filter((step) => step.agent === "engineer" && step.stream === stream);
    expect(new Set(own.map(({ worker }) => worker)).size).toBe(1);
  }
  expect(alone.steps.every(({ worker }) => worker === null)).toBe(true);
  expect(git(there, "for-each-ref", "--format=%(refname)", "refs/io")).toBe("");
  await until("the workers to have put everything away", () => workers.every(({ left }) => left().length === 0));
}, 300_000);

test("ten tasks of two squads are done by three workers, each with its branch, evidence, decision and page as on one machine", async () => {
  const { daemon } = hosts;
  const folders = { web: project(), api: project() };
  for (const [slug, folder] of Object.entries(folders)) {
    await squadWith(daemon, folder, slug, ["Engineer", "Tester"]);
    await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree" });
  }
  const tasks: Task[] = [];
  for (let number = 1; number <= 10; number += 1)
    tasks.push(await delegate(daemon, number % 2 === 0 ? "web" : "api", { task: `Write file ${number}` }));
  const all = await Promise.all(tasks.map(({ id }) => ended(daemon, id, 180_000)));
  for (const [index, done] of all.entries()) {
    const number = index + 1;
    expect(done).toMatchObject({ status: "done", result: `Wrote ${number}.`, attempts: 1, error: null });
    expect(done.worker).toMatch(/^w[123]$/);
    expect(done.evidence).toMatchObject({
      filesChanged: [`${number}.txt`],
      commands: [{ command: `cat ${number}.txt`, exitCode: 0 }],
    });
    expect(git(folders[done.squad as "web"], "show", `${done.evidence!.branch}:${number}.txt`)).toBe(String(number));
  }
  const pages = await daemon.json<{ items: { path: string }[] }>("GET", "/api/wiki/pages");
  expect(pages.items.filter(({ path }) => path.includes("file-"))).toHaveLength(10);
  const squad = await daemon.json<{ decisions: unknown[] }>("GET", "/api/squads/web");
  expect(squad.decisions).toHaveLength(5);
  expect(new Set(all.map(({ worker }) => worker)).size).toBeGreaterThan(1);
}, 300_000);
