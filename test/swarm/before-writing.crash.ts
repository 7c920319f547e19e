import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play, sh, taskIn } from "../support/swarm/index.ts";
import { asked, type Life, live, runOf, TWO_TASKS } from "../support/swarm/lives.ts";

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
      if (role === "pm") return { say: TWO_TASKS };
      if (role === "tester" && !afterTool) return sh("echo left > leftover.txt");
      if (role !== "engineer" || afterTool) return undefined;
      return prompt.includes("conflicts with work")
        ? sh("grep -v '^[<=>]\\{7\\}' list.txt > n; mv n list.txt")
        : sh(`grep -qx ${taskIn(prompt)} list.txt || echo ${taskIn(prompt)} >> list.txt`);
    }),
  );
  const killBefore = join(home, "killed-before.txt");
  writeFileSync(killBefore, "");
  const base = { home, project, modelUrl: model.url, issue: "Do two things", killBefore };
  let resume: string | undefined;
  const inFlight: (number | null)[] = [];
  let last: Life | undefined;
  for (let lives = 0; lives < 80; lives += 1) {
    last = await live({ ...base, ...(resume && { resume }) });
    const { row, steps } = runOf(home);
    resume = row?.id;
    if (last.signal === null) break;
    const answered = readFileSync(killBefore, "utf8").trim().split("\n").at(-1);
    const cutOff = steps.filter(({ kind, state, key }) => kind === "call" && state === "begun" && key !== answered);
    inFlight.push(...cutOff.map(({ stream }) => stream));
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", reason: null });
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
  expect(questions.length - new Set(questions).size).toBeLessThanOrEqual(inFlight.length);
  // A check beside it may be what the process is killed for.
  const outsideStreams = inFlight.filter((stream) => stream === null).length;
  expect(questions.filter((each) => each.startsWith("pm:")).length).toBeLessThanOrEqual(1 + outsideStreams);
}, 300_000);
