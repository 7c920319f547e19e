import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { openStore } from "../../../src/store/open.ts";
import { openRuns } from "../../../src/store/runs.ts";
import { bundled } from "../bundled.ts";
import { temporaryFolder } from "../home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../model.ts";
import { git, makeProject, play, roleOf, sh, task, taskIn } from "./index.ts";

const program = bundled(join(packageRoot, "test", "support", "swarm", "child.ts"));

/** Two tasks, in the format of the pm's answer. */
export const TWO_TASKS = JSON.stringify([task("T1", "First"), task("T2", "Second")]);

/** How a process that worked on a run ended. */
export interface Life {
  code: number | null;
  signal: NodeJS.Signals | null;
  said: string;
}

/** Works on a run in its own process, which may be told where to kill itself. */
export async function live(options: object, onStart?: (child: ChildProcess) => void): Promise<Life> {
  const child = spawn(process.execPath, [await program, JSON.stringify(options)], {
    cwd: packageRoot,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onStart?.(child);
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  return new Promise((done) => child.once("close", (code, signal) => done({ code, signal, said })));
}

/** The latest run in a home, and its steps. */
export function runOf(home: string) {
  const store = openStore(join(home, "io.db"));
  const runs = openRuns(store);
  const [row] = runs.list(1);
  const steps = row ? runs.steps(row.id) : [];
  store.close();
  return { row, steps };
}

/** A project, and a model that takes two streams through every phase. */
export async function scene() {
  const home = temporaryFolder();
  const project = makeProject();
  const model = await scriptedModel(
    play(({ role, prompt, before }) => {
      if (role === "pm" && prompt.includes("Reply with a JSON array")) return { say: TWO_TASKS };
      if (role === "eng-spec-reviewer" && before === 0) return { say: "1. Say more." };
      return undefined;
    }),
  );
  return { home, project, model, base: { home, project, modelUrl: model.url, issue: "Do two things" } };
}

/** The same with two streams that change the same line, and testers that leave a file behind. */
export async function conflictScene() {
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
  return { home, project, model, base: { home, project, modelUrl: model.url, issue: "Do two things" } };
}

/** What a run of that scene must produce, however often it was interrupted. */
export function expectBothSides(project: string, run: string): void {
  const lines = git(project, "show", `swarm/${run}:list.txt`).split("\n");
  expect(lines.sort()).toEqual(["T1", "T2", "start"]);
  expect(git(project, "ls-tree", "--name-only", `swarm/${run}`).split("\n").sort()).toEqual([
    "Makefile",
    "README.md",
    "list.txt",
    "swarm.config.yaml",
  ]);
  expect(git(project, "log", "--format=%s", `main..swarm/${run}`)).toBe("Do two things");
  const merges = git(project, "log", "--merges", "--format=%s", `refs/swarm/${run}/history`).split("\n");
  expect(merges.filter((subject) => subject.startsWith("Merge stream"))).toHaveLength(2);
}

/** What the model was asked, one entry per turn, without times. */
export const asked = (requests: Parameters<typeof roleOf>[0][]) =>
  requests
    .filter((request) => !isAfterTool(request))
    .map(
      (request) =>
        `${roleOf(request)}: ${lastUserText(request)
          .replace(/<current_datetime>.*?<\/current_datetime>/s, "")
          .replace(/\d+ ms/g, "ms")
          .trim()}`,
    );
