import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeRun } from "../../src/swarm/tools.ts";
import { git, type HarnessOptions, NOTHING_TO_BREAK, startSwarm } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";

async function applied(options: HarnessOptions & { meanwhile?: (project: string) => void } = {}) {
  let project = "";
  const harness = await startSwarm({
    ...options,
    files: { "swarm.config.yaml": ON_BRANCH, "T1.txt": "as it was\n", ...options.files },
    script: (told) => {
      if (told.role === "eng-code-reviewer") options.meanwhile?.(project);
      return options.script?.(told);
    },
  });
  project = harness.project;
  const run = await (await harness.swarm.start({ projectPath: project, issue: "Greet", settings: harness.settings, apply: true }))
    .finished;
  return { ...harness, run, text: describeRun(run) };
}

test("an approved result is merged into the branch that was checked out when the run began", async () => {
  const { run, project, text } = await applied();
  expect(run).toMatchObject({ outcome: "approved", applied: true, notes: [NOTHING_TO_BREAK] });
  expect(readFileSync(join(project, "T1.txt"), "utf8")).toBe("work of T1\n");
  expect(text).toContain(`${run.branch} (applied)`);
});

test("a result that cannot be merged over the user's own changes says so, and leaves them", async () => {
  const { run, project, text } = await applied({
    meanwhile: (at) => writeFileSync(join(at, "T1.txt"), "mine\n"),
  });
  expect(run).toMatchObject({ outcome: "approved", applied: false });
  expect(readFileSync(join(project, "T1.txt"), "utf8")).toBe("mine\n");
  expect(text).toMatch(/the result was not merged into the checkout: [\s\S]*T1\.txt/);
});

test("a merge that the user is in the middle of stays as it is, and the commands for afterwards are told", async () => {
  const { run, project, text } = await applied({
    meanwhile: (at) => {
      for (const [branch, words] of [
        ["theirs", "of theirs\n"],
        ["main", "of mine\n"],
      ] as const) {
        git(at, "switch", "-q", ...(branch === "main" ? [] : ["-c"]), branch);
        writeFileSync(join(at, "README.md"), words);
        git(at, "commit", "-q", "-am", branch);
      }
      expect(() => git(at, "merge", "theirs")).toThrow();
      writeFileSync(join(at, "README.md"), "half settled\n");
    },
  });
  expect(run).toMatchObject({ outcome: "approved", applied: false });
  expect(git(project, "rev-parse", "MERGE_HEAD")).toBe(git(project, "rev-parse", "theirs"));
  expect(readFileSync(join(project, "README.md"), "utf8")).toBe("half settled\n");
  expect(text).toContain(`In ${project} type:`);
  expect(text).toMatch(new RegExp(`git merge --continue   # or: git merge --abort\\n\\s*git merge ${run.branch}`));
});

test("a result is not merged into a branch that was checked out later", async () => {
  const { run, project, text } = await applied({
    meanwhile: (at) => git(at, "switch", "-q", "-c", "elsewhere"),
  });
  expect(run).toMatchObject({ outcome: "approved", applied: false });
  expect(git(project, "rev-parse", "elsewhere")).toBe(git(project, "rev-parse", "main"));
  expect(text).toMatch(/was not merged into the checkout: it was on main when the run began and is on elsewhere now/);
});

test("a result that is not approved is not merged, and says so; work in place is there already", async () => {
  const rejected = await applied({ script: ({ role }) => (role === "eng-code-reviewer" ? { say: "No." } : undefined) });
  expect(rejected.run).toMatchObject({ outcome: "unapproved", applied: false });
  expect(rejected.text).toContain("the result was not merged into the checkout: not everything is approved");
  const inPlace = await applied({ git: false });
  expect(inPlace.text).toContain("the work was done in place, so it is there already");
});

test("checks that failed on trees that were given up are not told of an approved run", async () => {
  const { run, text } = await applied({
    checks: [{ name: "test", command: "grep -q good T1.txt", cwd: "." }],
    script: ({ role, prompt, afterTool, before }) => {
      if (role === "eng-code-reviewer") return { say: before === 0 ? "The check fails." : "Good.\n\nAPPROVED" };
      if (afterTool) return { say: "Done." };
      const content = prompt.includes("The check fails.") ? "good\n" : "bad\n";
      return { call: [{ tool: "file_ops", args: { operation: "write", path: "T1.txt", content } }] };
    },
  });
  expect(run.outcome).toBe("approved");
  expect(run.evidence.map(({ exitCode }) => exitCode)).toContain(1);
  expect(text).toContain('✓ "grep -q good T1.txt": exit 0');
  expect(text).not.toContain("exit 1");
});
