import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { currentEvidence } from "../../src/swarm/steps/current-evidence.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { git, type Harness, makeProject, type Script, sh, startSwarm, task, write } from "../support/swarm/index.ts";

const { atTheEnd, end } = collectEndings();
let harness: Harness;
let other: string;
let script: Script = () => undefined;
/** The worktrees in a prompt: the agent's own, then the one of the other repository. */
const treesIn = (prompt: string): string[] => [...prompt.matchAll(/^- (\/\S+) \(of the repository/gm)].map(([, path]) => path!);

beforeAll(async () => {
  const check = (command: string) => [{ name: "test", command, cwd: "." }];
  harness = await startSwarm({
    atTheEnd,
    script: (told) => script(told),
    parts: { findChecks: async () => check("test ! -e broken.txt") },
  });
  other = makeProject({ "lib.txt": "one\n" }, true, temporaryFolder(atTheEnd));
}, 120_000);
afterAll(end);

async function run(more: object = {}): Promise<Run> {
  const { project: projectPath, settings, swarm } = harness;
  const { id, finished } = await swarm.start({ projectPath, issue: "Greet in both", settings, with: [other], ...more });
  await finished;
  await swarm.settled(id);
  return swarm.show(id)!;
}

describe("a run with another repository", () => {
  let ended: Run;
  beforeAll(async () => {
    script = ({ role, prompt, afterTool, request }) => {
      if (role !== "engineer") return undefined;
      const [own = "", there = ""] = treesIn(prompt);
      const count = request.messages.filter((message) => message.role === "tool").length;
      if (!afterTool) return write(join(there, "lib.txt"), "two\n");
      if (count === 1) return write("T1.txt", "greets\n");
      return count === 2 ? sh(`cp ${own}/T1.txt ${there}/by-shell.txt`) : undefined;
    };
    ended = await run();
  }, 120_000);

  test("is one piece of work: every prompt names both worktrees, and one branch name holds the result in each", () => {
    expect(ended).toMatchObject({ outcome: "approved", reason: null });
    const trees = treesIn(harness.prompts("engineer")[0]!);
    expect(trees).toHaveLength(2);
    expect(new Set(trees).size).toBe(2);
    for (const role of ["pm", "engineer", "eng-code-reviewer", "tester"])
      for (const prompt of harness.prompts(role)) expect(treesIn(prompt)[1]).toBe(trees[1]);
    const branch = ended.branch!;
    expect(git(harness.project, "diff", "--name-only", "main", branch)).toBe("T1.txt");
    expect(git(other, "diff", "--name-only", "main", branch).split("\n")).toEqual(["by-shell.txt", "lib.txt"]);
    expect(git(other, "show", `${branch}:by-shell.txt`)).toBe("greets");
    // Neither checkout has changed, and each branch is one commit on top of its main.
    for (const project of [harness.project, other]) {
      expect(git(project, "status", "--porcelain", "--untracked-files=no")).toBe("");
      expect(git(project, "rev-list", "--count", `main..${branch}`)).toBe("1");
      expect(git(project, "worktree", "list").split("\n")).toHaveLength(1);
    }
  });

  test("the checks of each repository are evidence on the result, and reviewers see both changes", () => {
    const evidence = currentEvidence(ended, ended.tree).map(({ name, exitCode }) => ({ name, exitCode }));
    expect(evidence).toEqual([
      { name: "test", exitCode: 0 },
      { name: "project: test", exitCode: 0 },
    ]);
    const [reviewed] = harness.prompts("eng-code-reviewer").slice(-1);
    expect(reviewed).toContain("+greets");
    expect(reviewed).toContain("+two");
    expect(ended.repositories).toEqual([
      expect.objectContaining({
        projectPath: other,
        branch: ended.branch,
        tree: git(other, "rev-parse", `${ended.branch}^{tree}`),
      }),
      expect.objectContaining({
        projectPath: harness.project,
        tree: git(harness.project, "rev-parse", `${ended.branch}^{tree}`),
      }),
    ]);
  });

  test("what the run changed is shown for both, and it is merged by hand alone", async () => {
    const { text } = await harness.swarm.diff(ended.id);
    expect(text).toContain("+greets");
    expect(text).toContain("+two");
    expect(text).not.toContain("io-repositories");
    await expect(harness.swarm.apply(ended.id)).rejects.toThrow("several repositories");
  });

  test("swarm clean takes the branches of both away", async () => {
    await harness.swarm.clean([ended.id], { unmerged: true });
    for (const project of [harness.project, other])
      expect(git(project, "for-each-ref", "refs/heads/swarm", "refs/swarm")).toBe("");
    expect(existsSync(join(harness.home, "runs", ended.id))).toBe(false);
  });
});

test("a check that fails in the other repository is held against the run", async () => {
  script = ({ role, prompt, afterTool }) =>
    role === "engineer" && !afterTool ? write(join(treesIn(prompt)[1]!, "broken.txt"), `${prompt.length}\n`) : undefined;
  const ended = await run();
  expect(ended.outcome).toBe("unapproved");
  expect(ended.reason).toMatch(/qa:tester is exhausted|"project: test" fails|did not approve/);
  expect(ended.outcome).not.toBe("unchanged");
}, 120_000);

test("what a stream that fails did in the other repository is not on its branch", async () => {
  script = ({ role, prompt, afterTool }) => {
    if (role === "pm") return { say: JSON.stringify([task("T1", "First"), task("T2", "Second")]) };
    if (role === "eng-code-reviewer" && prompt.includes("First")) return { say: "No." };
    if (role !== "engineer" || afterTool) return undefined;
    const name = /## (?:Your|The) task\n(\w+):/.exec(prompt)?.[1] ?? "none";
    return write(join(treesIn(prompt)[1]!, `${name}.txt`), `${prompt.length}\n`);
  };
  const pipelineFile = join(temporaryFolder(atTheEnd), "strict.yaml");
  writeFileSync(
    pipelineFile,
    `pipeline:
  - {phase: decompose, agent: pm}
  - phase: implement
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED, onExhausted: fail}]
`,
  );
  const ended = await run({ pipelineFile });
  expect(ended.streams.map(({ status }) => status)).toEqual(["failed", "done"]);
  expect(git(other, "diff", "--name-only", "main", ended.branch!)).toBe("T2.txt");
}, 120_000);

test("a run that changes only the other repository is not unchanged", async () => {
  script = ({ role, prompt, afterTool }) =>
    role === "engineer" && !afterTool ? write(join(treesIn(prompt)[1]!, "alone.txt"), "x\n") : undefined;
  const ended = await run();
  expect(ended.outcome).toBe("approved");
  expect(git(harness.project, "rev-parse", ended.branch!)).toBe(git(harness.project, "rev-parse", "main"));
}, 120_000);

test("an interrupted run goes on with both, and does nothing twice", async () => {
  let calls = 0;
  let hold: (() => void) | undefined;
  const reached = new Promise<void>((done) => {
    script = ({ role, prompt, afterTool }) => {
      if (role === "engineer" && !afterTool) {
        calls += 1;
        return write(join(treesIn(prompt)[1]!, "once.txt"), "x\n");
      }
      if (role !== "eng-code-reviewer" || hold) return undefined;
      done();
      return new Promise((go) => {
        hold = () => go({ say: "Good.\n\nAPPROVED" });
      });
    };
  });
  const { project: projectPath, settings, swarm } = harness;
  const { id } = await swarm.start({ projectPath, issue: "Greet in both", settings, with: [other] });
  await reached;
  const interrupted = swarm.interrupt(id);
  hold?.();
  expect((await interrupted).status).toBe("interrupted");
  expect(readdirSync(join(harness.home, "runs", id, "worktrees"))).toContain("with-1-project");
  const ended = await (await swarm.resume(id)).finished;
  expect(ended).toMatchObject({ outcome: "approved", reason: null });
  expect(calls).toBe(1);
  expect(git(other, "diff", "--name-only", "main", ended.branch!)).toBe("once.txt");
}, 120_000);

test("a project that cannot be part of it is refused before anything is begun", async () => {
  const before = harness.swarm.list().length;
  await expect(run({ with: [harness.project] })).rejects.toThrow("same repository");
  await expect(run({ with: [other, other] })).rejects.toThrow("same repository");
  await expect(run({ with: [temporaryFolder(atTheEnd)] })).rejects.toThrow("in no git repository");
  await expect(run({ apply: true })).rejects.toThrow("--apply");
  expect(harness.swarm.list()).toHaveLength(before);
  expect(readFileSync(join(other, "lib.txt"), "utf8")).toBe("one\n");
});
