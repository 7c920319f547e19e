import { join } from "node:path";
import { expect, test } from "vitest";
import { git, makeProject, type Script, sh, startSwarm } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";

/** What a check does to the tree before it ends. */
const DAMAGE = {
  "deletes a folder": "rm -rf folder",
  "moves a file": "mv a.txt moved.txt",
  "puts a folder in a file's place": "rm -f b.txt; mkdir -p b.txt/deep; echo new > b.txt/deep/new.txt",
  "puts a file in a folder's place": "rm -rf other; echo file > other",
  "puts a link in a file's place": "ln -sf /etc/passwd c.txt",
  "puts a pipe in a file's place": "rm -f d.txt; mkfifo d.txt",
  "makes a file executable": "chmod +x e.txt",
  "changes files with odd names": "echo gone > '*.txt'; echo gone > ':(top)x'; echo gone > \"$(printf 'two\\nlines.txt')\"",
  "leaves new files": "mkdir -p left && echo left > left/file.txt",
  "changes a submodule": "echo gone > vendor/lib/lib.txt; echo new > vendor/lib/new.txt",
  "stages and commits": "echo gone > f.txt; git add -A; git commit -q -m gone; git checkout -q -b elsewhere; git stash",
};
const FILES = {
  ...{ "folder/a.txt": "a\n", "folder/b.txt": "b\n", "a.txt": "a\n", "b.txt": "b\n", "other/a.txt": "a\n", "c.txt": "c\n" },
  ...{ "d.txt": "d\n", "e.txt": "e\n", "f.txt": "f\n", "*.txt": "star\n", ":(top)x": "magic\n", "two\nlines.txt": "two\n" },
};

/** Runs on a project with a submodule. */
async function runWith(checks: string[], script?: Script) {
  const library = makeProject({ "lib.txt": "library\n" });
  const at = await startSwarm({
    checks: checks.map((command) => ({ name: command, command, cwd: "." })),
    files: { "swarm.config.yaml": ON_BRANCH, ...FILES },
    ...(script && { script }),
  });
  git(at.project, "submodule", "--quiet", "add", library, "vendor/lib");
  git(at.project, "commit", "-q", "-m", "with a library");
  const run = await (await at.swarm.start({ projectPath: at.project, issue: "Greet", settings: at.settings })).finished;
  return { ...at, run, changed: git(at.project, "diff", "--name-only", `main..${run.branch}`).split("\n") };
}

test("whatever failing checks do to the tree, nothing of it is in the result and no other check is blamed for it", async () => {
  const failing = Object.values(DAMAGE).map((command) => `${command}; echo 'error: x'; exit 1`);
  const { run, changed, project } = await runWith([...failing, "test -f README.md"]);
  expect(run.evidence.map(({ changed: files, verdict }) => [verdict, files]).at(-1)).toEqual(["passed", undefined]);
  expect(run.evidence.every(({ changed: files }) => files === undefined)).toBe(true);
  expect(changed).toEqual(["T1.txt"]);
  expect(run.outcome).toBe("approved");
  expect(git(join(project, "vendor", "lib"), "branch", "--list", "swarm*")).toBe("");
}, 120_000);

test("what a passing check builds in a submodule is no change, and a pipe in a file's place is named and loses nothing", async () => {
  const { run, changed, project } = await runWith(["echo built > vendor/lib/built.o"], ({ role, afterTool }) =>
    role === "engineer" && !afterTool ? sh("rm d.txt; mkfifo d.txt; echo work > T1.txt") : undefined,
  );
  expect(run).toMatchObject({ outcome: "approved", evidence: [{ verdict: "passed" }] });
  expect(changed).toEqual(["T1.txt"]);
  expect(run.notes.join("\n")).toMatch(/left out of the branch.*d\.txt/);
  expect(git(project, "show", `${run.branch}:d.txt`)).toBe("d");
  expect(git(join(project, "vendor", "lib"), "branch", "--list", "swarm*")).toBe("");
}, 120_000);
