import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unsettled } from "../../src/git/merges.ts";
import { openRepo } from "../../src/git/repository.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject, sh, startSwarm, task } from "../support/swarm/index.ts";
import { both, engineer, runStreams as runWith, split, YAML } from "../support/swarm/streams.ts";

test("a repository that git refuses is not worked on in place: what git says is told, no model is asked and no run is left", async () => {
  const { project, model, swarm, home, settings } = await startSwarm({ files: { "swarm.config.yaml": YAML() } });
  writeFileSync(join(project, ".git", "index"), "no index");
  await expect(swarm.start({ projectPath: project, issue: "Do it", settings })).rejects.toThrow(
    /git refuses .*project.*index file.*parallel: false/s,
  );
  expect(swarm.list()).toEqual([]);
  expect(existsSync(join(home, "runs"))).toBe(false);
  expect(model.requests).toEqual([]);
  expect(existsSync(join(project, "T1.txt"))).toBe(false);
});

test("a repository of another owner is refused with the command that allows it", async () => {
  const project = makeProject();
  const folder = temporaryFolder();
  const path = process.env.PATH;
  writeFileSync(join(folder, "git"), `#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 PATH="${path}" exec git "$@"\n`);
  chmodSync(join(folder, "git"), 0o755);
  const stranger = testGit({}, { ...process.env, PATH: `${folder}:${path}` });
  await expect(openRepo(stranger, project)).rejects.toThrow(
    /dubious ownership[\s\S]*git config --global --add safe\.directory \S*project/,
  );
  const home = temporaryFolder();
  writeFileSync(join(home, ".gitconfig"), `[safe]\n\tdirectory = ${project}\n`);
  const trusted = testGit({}, { PATH: `${folder}:${path}`, HOME: home });
  expect(await openRepo(trusted, project)).toMatchObject({ root: project });
});

test("only a folder without a repository above it is outside git", async () => {
  const outside = makeProject({ "deep/down/x.txt": "x\n" }, false);
  expect(await openRepo(testGit(), join(outside, "deep", "down"))).toBeUndefined();
  const headless = makeProject({ "deep/down/x.txt": "x\n" });
  rmSync(join(headless, ".git", "HEAD"));
  await expect(openRepo(testGit(), join(headless, "deep", "down"))).rejects.toThrow(/git refuses [\s\S]*not a git repository/);
  const lost = makeProject();
  git(lost, "worktree", "add", "-q", "../other");
  renameSync(lost, `${lost}-moved`);
  await expect(openRepo(testGit(), join(lost, "..", "other"))).rejects.toThrow(/git refuses /);
  const empty = makeProject({}, false);
  git(empty, "init", "-q", "-b", "main");
  expect(await openRepo(testGit(), empty)).toMatchObject({ head: null, branch: "main" });
});

/** T2 waits until T1 is merged, and together they fail. */
const TOGETHER = 'checks: ["! { test -f T1.txt && test -f T2.txt; }"]';
const clash = split(task("T1", "One"), task("T2", "Two", { dependsOn: [] }), task("T3", "Three", { dependsOn: ["T1"] }));

test.each([
  [
    "its engineer gives no mending",
    both(
      clash,
      engineer((_, prompt) => (prompt.includes("together they do not") ? { status: 400 } : undefined)),
    ),
    "",
  ],
  [
    "its mending is not approved",
    both(
      clash,
      ({ role, prompt }) => (role === "eng-code-reviewer" && /\+mended/.test(prompt) ? { say: "No." } : undefined),
      engineer((_, prompt) => (prompt.includes("together they do not") ? sh("echo mended > mended.txt") : undefined)),
    ),
    ", onExhausted: fail",
  ],
])(
  "a stream that fails after its merge is not in the result when %s, and others are merged onto what was before",
  async (_, script, more) => {
    const { run, project, home } = await runWith(script, { yaml: YAML(more, TOGETHER), env: { MAX_RETRIES: "1" } });
    const failed = run.streams.filter(({ status }) => status === "failed");
    expect(failed.every(({ merged }) => !merged)).toBe(true);
    expect(run.streams.filter(({ status }) => status === "done").length).toBeGreaterThan(0);
    const files = git(project, "ls-tree", "--name-only", run.branch!).split("\n");
    for (const { taskId, status } of run.streams) expect(files.includes(`${taskId}.txt`)).toBe(status === "done");
    expect(files).not.toContain("mended.txt");
    expect(failed.map(({ taskId }) => taskId)).toContain(files.includes("T1.txt") ? "T2" : "T1");
    const one = failed.find(({ taskId }) => taskId !== "T3")!;
    expect(git(project, "ls-tree", "--name-only", one.branch!)).toContain(`${one.taskId}.txt`);
    expect(existsSync(join(home, "runs", run.id, "worktrees", `stream-${one.number}`))).toBe(true);
    expect(git(project, "rev-parse", `${run.branch}^{tree}`)).toBe(run.tree);
  },
);

test("a change that is too long is cut once: its list of files stays whole, and the reviewer knows how much is missing", async () => {
  const long = Array.from({ length: 60_000 }, (_, index) => `line ${index} of many`).join("\n");
  const script = both(
    split(task("T1", "One")),
    engineer(() => sh(`for n in $(seq 1 40); do echo $n > file-$n.txt; done; seq -f 'line %.0f of many' 0 59999 > long.txt`)),
  );
  const { run, project, prompts } = await runWith(script);
  expect(run.outcome).toBe("approved");
  const [prompt = ""] = prompts("eng-code-reviewer");
  const file = join(temporaryFolder(), "whole.diff");
  git(project, "diff", `--output=${file}`, "-M", `${run.base}`, `${run.branch}`);
  const whole = readFileSync(file, "utf8").length;
  expect(whole).toBeGreaterThan(long.length);
  const said = Number(/(\d+) of its \d+ characters are left out/.exec(prompt)?.[1]);
  const shown = prompt.slice(prompt.indexOf("diff --git"), prompt.lastIndexOf("of many"));
  expect(Math.abs(whole - shown.length - said)).toBeLessThan(500);
  expect(prompt).toMatch(/Read the files .* before you judge/);
  for (let n = 1; n <= 40; n += 1) expect(prompt).toMatch(new RegExp(`file-${n}\\.txt +\\| +1 \\+`));
  expect(prompt).toMatch(/41 files changed, 60040 insertions/);
});

test("both sides of a conflict are cut once as well", async () => {
  const script = both(
    split(task("T1", "One"), task("T2", "Two")),
    engineer((id, prompt) =>
      prompt.includes("conflicts with work")
        ? sh("grep -v '^[<=>]\\{7\\}' list.txt > n; mv n list.txt")
        : sh(`seq -f '${id} %.0f' 0 59999 >> list.txt`),
    ),
  );
  const { run, prompts } = await runWith(script, { files: { "list.txt": "start\n" } });
  expect(run.outcome).toBe("approved");
  const conflict = prompts("engineer").find((prompt) => prompt.includes("conflicts with work"))!;
  const counts = [...conflict.matchAll(/(\d+) of its (\d+) characters are left out/g)].map((found) => found.slice(1).map(Number));
  expect(counts).toHaveLength(2);
  for (const [missing, all] of counts) expect(all! - missing!).toBeLessThan(40_000);
  for (const [missing] of counts) expect(missing).toBeGreaterThan(500_000);
  expect(conflict.length).toBeLessThan(100_000);
});

test("conflicts that are settled by deletion leave nothing to search, and a name that git could take for magic is searched", async () => {
  const marked = "<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n";
  const project = makeProject({ "fixture.txt": marked, ":x": marked, "*.txt": "fine\n" });
  expect(await unsettled({ git: testGit(), path: project }, ["gone.txt"])).toEqual([]);
  expect(await unsettled({ git: testGit(), path: project }, [":x", "gone.txt"])).toEqual([":x"]);
  expect(await unsettled({ git: testGit(), path: project }, ["*.txt"])).toEqual([]);
  expect(await unsettled({ git: testGit(), path: project }, [":x", "fixture.txt"])).toEqual([":x", "fixture.txt"]);
});

test("a repository that is made inside a stream is committed with its files, and its history is kept and noted", async () => {
  const init = "git init -q . && git -c user.name=a -c user.email=a@a commit -q --allow-empty -m begin";
  const script = both(
    split(task("T1", "One")),
    engineer(() =>
      sh(
        `mkdir -p app/inner fresh staged && echo a > app/a.txt && echo b > app/inner/b.txt && echo f > fresh/f.txt && echo s > staged/s.txt && (cd app/inner && ${init}) && (cd app && ${init}) && (cd fresh && git init -q .) && (cd staged && ${init}) && git add staged`,
      ),
    ),
  );
  const { run, project, home } = await runWith(script);
  expect(run.outcome).toBe("approved");
  const files = git(project, "ls-tree", "-r", "--name-only", run.branch!).split("\n");
  expect(files).toEqual(expect.arrayContaining(["app/a.txt", "app/inner/b.txt", "fresh/f.txt", "staged/s.txt"]));
  expect(git(project, "ls-tree", "-r", run.branch!)).not.toContain("160000");
  const kept = readdirSync(join(home, "runs", run.id, "nested"));
  expect(kept).toHaveLength(4);
  const app = /stream 1: app was a repository[\s\S]*? kept in (\S+\.git)/.exec(run.notes.join("\n"))![1]!;
  expect(git(app, "log", "--format=%s")).toBe("begin");
});

test("a repository that a tester leaves in a tree is put aside with its files", async () => {
  const yaml = `${YAML()}    qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED}\n`;
  const script = both(split(task("T1", "One")), ({ role, afterTool }) =>
    role === "tester" && !afterTool ? sh("mkdir try && cd try && git init -q . && echo left > left.txt") : undefined,
  );
  const { run, project } = await runWith(script, { yaml });
  expect(run, JSON.stringify(run.reason)).toMatchObject({ outcome: "approved" });
  expect(git(project, "ls-tree", "-r", "--name-only", run.branch!)).not.toContain("try");
  const ref = /refs\/swarm\/\S+/.exec(run.notes.join("\n"))![0];
  expect(git(project, "show", `${ref}:try/left.txt`)).toBe("left");
});

test.each([
  ["a branch called swarm", (folder: string) => void git(folder, "branch", "swarm"), /^swarm-r_/],
  [
    "a branch called swarm at its origin",
    (folder: string) => void git(folder, "update-ref", "refs/remotes/origin/swarm", "HEAD"),
    /^swarm-r_/,
  ],
  ["merges that want signatures", (folder: string) => void git(folder, "config", "merge.verifySignatures", "true"), /^swarm\/r_/],
])("a repository with %s has its result on a branch all the same", async (_, prepare, name) => {
  const { run, project } = await runWith(split(task("T1", "One"), task("T2", "Two")), { prepare, apply: true });
  expect(run).toMatchObject({ outcome: "approved", applied: true });
  expect(run.branch).toMatch(name);
  expect(git(project, "show", `${run.branch}:T2.txt`)).toBe("work of T2");
});
