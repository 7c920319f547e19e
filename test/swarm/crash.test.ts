import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/paths.ts";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { temporaryFolder } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { git, makeProject, play, roleOf, sh, task, taskIn } from "../support/swarm/index.ts";

const TWO = JSON.stringify([task("T1", "First"), task("T2", "Second")]);

interface Life {
  code: number | null;
  signal: NodeJS.Signals | null;
  said: string;
}

function live(options: object, onStart?: (child: ChildProcess) => void): Promise<Life> {
  return new Promise((done) => {
    const child = spawn(
      process.execPath,
      ["--import", "tsx", join(packageRoot, "test", "support", "swarm", "child.ts"), JSON.stringify(options)],
      { cwd: packageRoot, stdio: ["ignore", "pipe", "inherit"] },
    );
    onStart?.(child);
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    child.once("close", (code, signal) => done({ code, signal, said }));
  });
}

function runOf(home: string) {
  const store = openStore(join(home, "io.db"));
  const runs = openRuns(store);
  const [row] = runs.list(1);
  const steps = row ? runs.steps(row.id) : [];
  store.close();
  return { row, steps };
}

async function scene() {
  const home = temporaryFolder();
  const project = makeProject();
  const model = await scriptedModel(
    play(({ role, prompt, before }) => {
      if (role === "pm" && prompt.includes("Reply with a JSON array")) return { say: TWO };
      if (role === "eng-spec-reviewer" && before === 0) return { say: "1. Say more." };
      return undefined;
    }),
  );
  return { home, project, model, base: { home, project, modelUrl: model.url, issue: "Do two things" } };
}

/** What the model was asked, one line a question, in no order. */
const asked = (requests: Parameters<typeof roleOf>[0][]) =>
  requests
    .filter((request) => !isAfterTool(request))
    .map(
      (request) =>
        `${roleOf(request)}: ${lastUserText(request)
          .replace(/<current_datetime>.*?<\/current_datetime>/s, "")
          .replace(/\d+ ms/g, "ms")
          .trim()}`,
    );

test("a run with two streams that is killed after every single step ends in the same result, and no finished call is made again", async () => {
  const whole = await scene();
  const undisturbed = await live(whole.base);
  expect(undisturbed.code).toBe(0);
  const { outcome, tree, steps } = JSON.parse(undisturbed.said);
  expect(outcome).toBe("approved");
  const { steps: finished } = runOf(whole.home);
  const expectedSteps = finished
    .filter(({ kind }) => ["call", "checks", "git"].includes(kind))
    .map(({ key }) => key)
    .sort();
  const total = expectedSteps.length;
  expect(total).toBeGreaterThan(15);
  expect(steps).toBe(0);

  const { home, project, model, base } = await scene();
  let resume: string | undefined;
  let lives = 0;
  let inFlight = 0;
  let last: Life | undefined;
  for (; lives < total * 2; lives += 1) {
    last = await live({ ...base, killOn: "step.finished", killAt: 1, ...(resume && { resume }) });
    const { row, steps: left } = runOf(home);
    inFlight += left.filter(({ kind, state }) => kind === "call" && state === "begun").length;
    resume = row?.id;
    if (last.signal === null) break;
    expect(last.signal).toBe("SIGKILL");
  }
  expect(last?.code).toBe(0);
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", tree });
  expect(git(project, "rev-parse", `swarm/${resume}^{tree}`)).toBe(tree);
  expect(lives).toBeGreaterThanOrEqual(Math.floor(total / 2));
  const { steps: rows } = runOf(home);
  expect(
    rows
      .filter(({ kind }) => ["call", "checks", "git"].includes(kind))
      .map(({ key }) => key)
      .sort(),
  ).toEqual(expectedSteps);

  const once = asked(whole.model.requests);
  const again = asked(model.requests);
  expect(new Set(again)).toEqual(new Set(once));
  // A call of one stream may be in flight when a step of the other ends and the process dies: only such a call is asked again.
  expect(again.length - once.length).toBeLessThanOrEqual(inFlight);
  for (const line of once.filter((each) => !/^(engineer|eng-code-reviewer|tester)/.test(each))) {
    expect(again.filter((each) => each === line)).toHaveLength(1);
  }
}, 600_000);

test("a run that is killed each time a step's work is done and not yet written down repeats no work and ends in the same result", async () => {
  const home = temporaryFolder();
  const project = makeProject({
    "list.txt": "start\n",
    "swarm.config.yaml": `
pipeline:
  - {phase: decompose, agent: pm}
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]
    qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED}
`,
  });
  const model = await scriptedModel(
    play(({ role, prompt, afterTool }) => {
      if (role === "pm") return { say: TWO };
      if (role === "tester" && !afterTool) return sh("echo left > leftover.txt");
      if (role !== "engineer" || afterTool) return undefined;
      return prompt.includes("conflicts with work")
        ? sh("grep -v '^[<=>]\\{7\\}' list.txt > n; mv n list.txt")
        : sh(`echo ${taskIn(prompt)} >> list.txt`);
    }),
  );
  const killBefore = join(home, "killed-before.txt");
  writeFileSync(killBefore, "");
  const base = { home, project, modelUrl: model.url, issue: "Do two things", killBefore };
  let resume: string | undefined;
  let inFlight = 0;
  let last: Life | undefined;
  for (let lives = 0; lives < 80; lives += 1) {
    last = await live({ ...base, ...(resume && { resume }) });
    const { row, steps } = runOf(home);
    resume = row?.id;
    if (last.signal === null) break;
    const answered = readFileSync(killBefore, "utf8").trim().split("\n").at(-1);
    inFlight += steps.filter(({ kind, state, key }) => kind === "call" && state === "begun" && key !== answered).length;
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved" });
  const lines = git(project, "show", `swarm/${resume}:list.txt`).split("\n");
  expect(lines.sort()).toEqual(["T1", "T2", "start"]);
  expect(git(project, "ls-tree", "--name-only", `swarm/${resume}`).split("\n").sort()).toEqual([
    "README.md",
    "list.txt",
    "swarm.config.yaml",
  ]);
  const merges = git(project, "log", "--merges", "--format=%s", `swarm/${resume}`).split("\n");
  expect(merges.filter((subject) => subject.startsWith("Merge stream"))).toHaveLength(2);
  const killed = readFileSync(killBefore, "utf8").trim().split("\n");
  for (const kind of [/\/open$/, /\/commit\/1$/, /\/merge\/1$/, /\/conflict\/1$/, /\/tidy$/, /^implement\/result$/, /\/draft$/])
    expect(killed.some((key) => kind.test(key))).toBe(true);
  const questions = asked(model.requests);
  expect(questions.length - new Set(questions).size).toBeLessThanOrEqual(inFlight);
  expect(questions.filter((each) => each.startsWith("pm:"))).toHaveLength(1);
}, 300_000);

test("a run that is killed while steps are under way goes on from there", async () => {
  const { home, base } = await scene();
  let resume: string | undefined;
  let last: Life | undefined;
  for (let lives = 0; lives < 20; lives += 1) {
    last = await live({ ...base, killOn: "step.started", killAt: 5, ...(resume && { resume }) });
    resume = runOf(home).row?.id;
    if (last.signal === null) break;
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved" });
}, 300_000);

test("an engineer that is killed in the middle of its turn does not do its work twice", async () => {
  const home = temporaryFolder();
  const project = makeProject({
    "swarm.config.yaml": "pipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n",
  });
  let child: ChildProcess | undefined;
  let killed = false;
  const model = await scriptedModel((request) => {
    if (!isAfterTool(request)) return { call: [{ tool: "shell", args: { command: "echo once >> log.txt" } }] };
    if (!killed) child?.kill("SIGKILL");
    killed = true;
    return { say: "Done.", delayMs: 300 };
  });
  const base = { home, project, modelUrl: model.url, issue: "Write a log" };
  const first = await live(base, (started) => {
    child = started;
  });
  expect(first.signal).toBe("SIGKILL");
  const { row } = runOf(home);
  const second = await live({ ...base, resume: row!.id });
  expect(JSON.parse(second.said)).toMatchObject({ status: "done", outcome: "approved" });
  expect(git(project, "show", `swarm/${row!.id}:log.txt`)).toBe("once");
}, 120_000);
