import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lfsHindrance } from "../../src/git/lfs.ts";
import { openRepo } from "../../src/git/repository.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { testGit, walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { ODDITIES } from "../support/oddities.ts";
import { ensureProgram } from "../support/program.ts";
import { git, makeProject, sh, startSwarm, task } from "../support/swarm/index.ts";
import { both, engineer, runStreams, split, YAML } from "../support/swarm/streams.ts";
import { until } from "../support/until.ts";

/** One name for each oddity, in order: names that once broke a run, and others that have a meaning for IO. */
const ODD_NAMES = [".env", "node_modules", "vendor", ".venv", "venv", "target", ".tox", "dist", ".mypy_cache", ".cache", "build"];

/** Adds a library as a submodule of a project. */
function withLibrary(folder: string, library: string): void {
  git(folder, "submodule", "--quiet", "add", library, "vendor/lib");
  git(folder, "commit", "-q", "-m", "with a library");
}

test("what a stream changes in a submodule is on a branch of the user's own submodule, and the result names nothing else", async () => {
  const library = makeProject({ "lib.txt": "library\n" });
  const { run, project, swarm } = await runStreams(
    both(
      split(task("T1", "One"), task("T2", "Two", { dependsOn: ["T1"] })),
      engineer((id) => sh(id === "T1" ? "echo better > vendor/lib/lib.txt" : "cat vendor/lib/lib.txt > seen.txt")),
    ),
    {
      prepare: (folder) => withLibrary(folder, library),
      apply: true,
      checks: [{ name: "lib", command: "cat vendor/lib/lib.txt", cwd: "." }],
    },
  );
  expect(run).toMatchObject({ outcome: "approved", applied: true });
  await swarm.close();
  const linked = git(project, "rev-parse", "main:vendor/lib");
  const theirs = join(project, "vendor", "lib");
  expect(git(theirs, "show", `${linked}:lib.txt`)).toBe("better");
  expect(git(theirs, "branch", "--list", "swarm/*", "--format=%(objectname)").split("\n")).toContain(linked);
  expect(readFileSync(join(theirs, "lib.txt"), "utf8")).toBe("library\n");
  expect(git(project, "show", "main:seen.txt")).toBe("better");
  expect(run.notes.join("\n")).toMatch(/vendor\/lib is a submodule and was changed.*Push that before/);
  expect(run.evidence.at(-1)?.tail).toContain("better");
  expect(git(project, "worktree", "list").split("\n")).toHaveLength(1);
}, 120_000);

test("two streams that change one submodule are not merged as if one of them had not", async () => {
  const library = makeProject({ "lib.txt": "library\n" });
  const { run, project } = await runStreams(
    both(
      split(task("T1", "One"), task("T2", "Two")),
      engineer((id) => sh(`echo ${id} > vendor/lib/${id}.txt`)),
    ),
    { prepare: (folder) => withLibrary(folder, library) },
  );
  expect(run.outcome).not.toBe("approved");
  expect(run.streams.map(({ status }) => status).sort()).toEqual(["done", "failed"]);
  expect(run.streams.find(({ status }) => status === "failed")?.reason).toMatch(/two streams changed the submodule vendor\/lib/);
  const linked = git(project, "rev-parse", `${run.branch}:vendor/lib`);
  expect(git(join(project, "vendor", "lib"), "cat-file", "-t", linked)).toBe("commit");
}, 120_000);

test("a submodule whose named commit is not here is refused before the first call; one that is not checked out is told of", async () => {
  const library = makeProject({ "lib.txt": "library\n" });
  const at = await startSwarm({ files: { "swarm.config.yaml": YAML() } });
  withLibrary(at.project, library);
  writeFileSync(join(library, "lib.txt"), "newer\n");
  git(library, "commit", "-q", "-am", "newer");
  git(at.project, "update-index", "--cacheinfo", `160000,${git(library, "rev-parse", "HEAD")},vendor/lib`);
  git(at.project, "commit", "-q", "-m", "a newer library");
  const start = () =>
    at.swarm.start({ projectPath: at.project, issue: "Do it", settings: at.settings, onNote: (text) => notes.push(text) });
  const notes: string[] = [];
  await expect(start()).rejects.toThrow(/vendor\/lib: .*not here.*git submodule update --init/s);
  expect([at.swarm.list(), at.model.requests]).toEqual([[], []]);
  git(at.project, "submodule", "--quiet", "deinit", "-f", "vendor/lib");
  expect((await (await start()).finished).outcome).toBe("approved");
  expect(notes.join()).toMatch(/not checked out are empty for the agents too: vendor\/lib/);
}, 120_000);

test.each([
  ["by folders", ["--cone", "app"]],
  ["by patterns", ["--no-cone", "/*", "!/other/"]],
])(
  "a checkout that is sparse %s stays so, and nothing outside of it is lost from the result",
  async (_, words) => {
    const { run, project } = await runStreams(
      both(
        split(task("T1", "One")),
        engineer(() => sh("mkdir -p other && echo new > other/new.txt && echo changed > app/a.txt; ls other > app/seen.txt")),
      ),
      {
        files: { "app/a.txt": "a\n", "other/b.txt": "b\n", "other/deep/c.txt": "c\n" },
        prepare: (folder) => void git(folder, "sparse-checkout", "set", ...words),
        apply: true,
      },
    );
    expect(run).toMatchObject({ outcome: "approved", applied: true });
    const files = git(project, "ls-tree", "-r", "--name-only", "main").split("\n");
    expect(files).toEqual(expect.arrayContaining(["app/a.txt", "other/b.txt", "other/deep/c.txt", "other/new.txt"]));
    expect(git(project, "show", "main:app/seen.txt")).toBe("new.txt");
    expect(readFileSync(join(project, "app", "a.txt"), "utf8")).toBe("changed\n");
    expect(existsSync(join(project, "other", "b.txt"))).toBe(false);
    expect(git(project, "status", "--porcelain", "--", ":!doc")).toBe("");
  },
  120_000,
);

/** A home whose git uses LFS, and a project with one file in it. */
async function largeFiles(more: NodeJS.ProcessEnv = {}) {
  await ensureProgram("git-lfs");
  const home = temporaryFolder();
  const env = { PATH: process.env.PATH, HOME: home };
  const run = (cwd: string, ...words: string[]) =>
    execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@t", ...words], { cwd, env, encoding: "utf8" });
  run(home, "lfs", "install", "--skip-repo");
  const project = makeProject({ "swarm.config.yaml": YAML() });
  writeFileSync(join(project, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  writeFileSync(join(project, "a.bin"), "the large content\n");
  run(project, "add", "-A");
  run(project, "commit", "-q", "-m", "large");
  const at = await startSwarm({
    script: both(
      split(task("T1", "One")),
      engineer(() => sh("cat a.bin > seen.txt; echo other content > b.bin")),
    ),
    parts: { ...walledGit(temporaryFolder(), { ...env, ...more }), env: { ...env, ...more } },
  });
  const start = (notes: string[] = [], projectPath = project) =>
    at.swarm.start({
      projectPath,
      issue: "Do it",
      settings: at.settings,
      apply: true,
      onNote: (text) => notes.push(text),
    });
  return { ...at, lfsHome: home, project, start, run };
}

test("files in Git LFS are whole for the agents, and what they write goes there", async () => {
  const at = await largeFiles();
  const run = await (await at.start()).finished;
  expect(run).toMatchObject({ outcome: "approved", applied: true });
  expect(git(at.project, "show", "main:seen.txt")).toBe("the large content");
  expect(git(at.project, "show", "main:b.bin")).toMatch(/^version https:\/\/git-lfs/);
  expect(readFileSync(join(at.project, "b.bin"), "utf8")).toBe("other content\n");
}, 300_000);

test("content of Git LFS that is not here is refused before the first call, with the command", async () => {
  const at = await largeFiles();
  const clone = join(temporaryFolder(), "clone");
  execFileSync("git", ["clone", "-q", at.project, clone], {
    env: { PATH: process.env.PATH, HOME: at.lfsHome, GIT_LFS_SKIP_SMUDGE: "1" },
  });
  await expect(at.start([], clone)).rejects.toThrow(
    /a\.bin: the content in Git LFS is not here.*git lfs pull.*GIT_LFS_SKIP_SMUDGE=1/s,
  );
  expect([at.swarm.list(), at.model.requests]).toEqual([[], []]);
}, 300_000);

test("with GIT_LFS_SKIP_SMUDGE, which that refusal names, the agents see pointers and the run goes to its end", async () => {
  const at = await largeFiles({ GIT_LFS_SKIP_SMUDGE: "1" });
  const clone = join(temporaryFolder(), "clone");
  execFileSync("git", ["clone", "-q", at.project, clone], {
    env: { PATH: process.env.PATH, HOME: at.lfsHome, GIT_LFS_SKIP_SMUDGE: "1" },
  });
  const notes: string[] = [];
  const run = await (await at.start(notes, clone)).finished;
  expect(run).toMatchObject({ outcome: "approved", applied: true });
  expect(notes.join("\n")).toMatch(/agents see pointers/);
  expect(git(clone, "show", "main:seen.txt")).toMatch(/^version https:\/\/git-lfs/);
  expect(git(clone, "diff", "--name-only", "origin/main", "HEAD", "--", "a.bin")).toBe("");
}, 300_000);

test("where git is told to use a git-lfs that is not there nothing is begun; where it is not told, pointers are", async () => {
  const at = await largeFiles();
  const folder = temporaryFolder();
  mkdirSync(join(folder, "bin"));
  // A machine without git-lfs, but with everything else that git and the agents need.
  for (const name of ["git", "sh", "cat", "bwrap", "ls", "env"])
    execFileSync("sh", ["-c", `ln -s "$(command -v ${name})" "${join(folder, "bin", name)}"`]);
  const execPath = execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim();
  expect(existsSync(join(execPath, "git-lfs"))).toBe(false);
  const without = (home: string) => {
    const env = { PATH: join(folder, "bin"), HOME: home };
    return startSwarm({ script: split(task("T1", "One")), parts: { ...walledGit(temporaryFolder(), env), env } });
  };
  const told = await without(at.lfsHome);
  const of = (swarm: typeof told) => swarm.swarm.start({ projectPath: at.project, issue: "Do it", settings: swarm.settings });
  // Depending on when the index was written, git examines a file and so runs the filter, or it does not.
  await expect(of(told)).rejects.toThrow(/(?:git-lfs: not found|'lfs' is not a git command).*Install git-lfs/s);
  expect([told.swarm.list(), told.model.requests]).toEqual([[], []]);
  const user = Promise.resolve({ always: [], readable: [], fetching: [], fetchingBy: {} });
  const untold = (await openRepo(testGit({ user }), at.project))!;
  expect((await lfsHindrance(untold, {})).note).toMatch(/Git LFS, which is not set up here: agents see pointers/);
}, 300_000);

test("a repository that knows an address and no name still commits", async () => {
  const project = makeProject();
  git(project, "config", "user.email", "me@here");
  const repo = await openRepo(testGit({}, { PATH: process.env.PATH, HOME: temporaryFolder() }), project);
  expect(repo?.identity).toEqual(["-c", "user.name=Swarm"]);
});

test("a run goes to its end in a checkout with every oddity that git ignores, and puts none of it in the branch", async () => {
  const aside = temporaryFolder();
  const names = new Map(Object.keys(ODDITIES).map((kind, index) => [kind, ODD_NAMES[index] ?? `odd-${index}`]));
  const { run, project } = await runStreams(
    both(
      split(task("T1", "One")),
      // The worktree also gets oddities, none of which git stores except the link.
      engineer(() => sh("mkdir in-the-way && echo new > in-the-way/file.txt; mkfifo pipe; ln -s nowhere broken; mkfifo .env")),
    ),
    {
      apply: true,
      checks: [{ name: "tests", command: "test -d node_modules/inner && test ! -e .venv && test ! -d .env", cwd: "." }],
      files: { "README.md": "odd\n" },
      prepare: async (folder) => {
        writeFileSync(join(folder, ".git", "info", "exclude"), [...names.values()].map((name) => `/${name}\n`).join(""));
        for (const [kind, make] of Object.entries(ODDITIES)) {
          const server = await make(join(folder, names.get(kind)!), aside);
          if (server) onTestFinished(() => void server.close());
        }
        // The user has a file where the result has a folder.
        writeFileSync(join(folder, "in-the-way"), "mine\n");
      },
    },
  );
  expect(run).toMatchObject({ outcome: "approved", applied: false });
  expect(run.notes.join("\n")).toMatch(/not merged into the checkout: .*\tin-the-way\n/s);
  expect(git(project, "ls-tree", "-r", "--name-only", run.branch!).split("\n").sort()).toEqual(
    ["Makefile", "README.md", "broken", "in-the-way/file.txt", "swarm.config.yaml"].sort(),
  );
  expect(readFileSync(join(project, "in-the-way"), "utf8")).toBe("mine\n");
  await until("the worktrees to be gone", () => git(project, "worktree", "list").split("\n").length === 1, 30_000);
}, 120_000);

test("a run in a repository whose .gitmodules leads through a link to another one goes to its end and touches nothing there", async () => {
  const library = makeProject({ "lib.txt": "library\n" });
  const neighbour = makeProject({ "precious.txt": "committed\n" });
  writeFileSync(join(neighbour, "precious.txt"), "not committed\n");
  const before = fingerprint(neighbour);
  const { run, project } = await runStreams(
    both(
      split(task("T1", "One"), task("T2", "Two")),
      engineer((id) => sh(`echo ${id} > ${id}.txt; rm -rf vendor && ln -s ${dirname(neighbour)} vendor`)),
    ),
    {
      prepare: (folder) => {
        withLibrary(folder, library);
        symlinkSync(dirname(neighbour), join(folder, "link"));
        const more = ["vendor/lib/objects", "vendor/lib/refs"].map(
          (name, at) => `[submodule "${name}"]\n\tpath = ${at === 0 ? "link/project" : `../${neighbour.slice(1)}`}\n`,
        );
        writeFileSync(join(folder, ".gitmodules"), `${readFileSync(join(folder, ".gitmodules"), "utf8")}${more.join("")}`);
        git(folder, "add", "-A");
        git(folder, "commit", "-q", "-m", "hostile");
      },
    },
  );
  expect(run.streams.map(({ status }) => status)).toContain("done");
  expect(git(project, "ls-tree", "-r", "--name-only", run.branch!)).toContain(".txt");
  expect(git(project, "log", "--all", "-p")).not.toContain("not committed");
  expect(fingerprint(neighbour)).toEqual(before);
}, 120_000);
