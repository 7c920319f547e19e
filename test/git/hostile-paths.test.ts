import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { setAside } from "../../src/git/aside.ts";
import { bring } from "../../src/git/dependencies.ts";
import { mergeInto } from "../../src/git/merges.ts";
import { moveAside, submoduleAt, submodulesOf } from "../../src/git/nested.ts";
import { openRepo, type Repo } from "../../src/git/repository.ts";
import { saveSubmodules } from "../../src/git/submodules.ts";
import { addWorktree, commitAll, placeBelow, removeWorktree, type Tree, treeOf } from "../../src/git/worktrees.ts";
import { UserError } from "../../src/lib/errors.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { removeTree } from "../../src/process/remove-tree.ts";
import { bundled } from "../support/bundled.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { swapper } from "../support/swapper.ts";
import { git, makeProject } from "../support/swarm/index.ts";

interface Ground {
  home: string;
  /** Contains the user's projects. */
  work: string;
  project: string;
  /** An unrelated repository of the user's, with uncommitted work. */
  neighbour: string;
  library: string;
}

function makeGround(): Ground {
  const work = realpathSync(temporaryFolder());
  const place = (name: string, made: string) => {
    renameSync(made, join(work, name));
    return join(work, name);
  };
  const neighbour = place("neighbour", makeProject({ "src/a.txt": "precious\n" }));
  writeFileSync(join(neighbour, "src", "a.txt"), "changed and not committed\n");
  writeFileSync(join(neighbour, "new.txt"), "new\n");
  const library = place("library", makeProject({ "lib.txt": "library\n" }));
  const project = place("project", makeProject());
  return { home: realpathSync(temporaryFolder()), work, project, neighbour, library };
}

/** Adds a valid submodule, and `.gitmodules` entries that git itself would not write. */
function plant(project: string, library: string, entries: readonly { name: string; path: string }[], name = "lib"): void {
  git(project, "submodule", "--quiet", "add", "--name", name, library, "lib");
  const text = entries.map((entry) => `[submodule "${entry.name}"]\n\tpath = ${entry.path}\n\turl = ./x\n`).join("");
  writeFileSync(join(project, ".gitmodules"), `${readFileSync(join(project, ".gitmodules"), "utf8")}${text}`);
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "hostile");
}

const upTo = (path: string) => `${"../".repeat(20)}${path.slice(1)}`;

const HOSTILE: Readonly<Record<string, (ground: Ground) => void>> = {
  "a path with .. into another submodule's git folder": ({ project, library, neighbour }) =>
    plant(project, library, [{ name: "lib/objects", path: upTo(neighbour) }]),
  "the same in different case": ({ project, library, neighbour }) =>
    plant(project, library, [
      { name: "LIB/objects", path: upTo(neighbour) },
      { name: "lib/refs", path: `x/../${upTo(neighbour)}` },
    ]),
  "an absolute path": ({ project, library, neighbour }) => plant(project, library, [{ name: "lib/objects", path: neighbour }]),
  "a path through a tracked link": ({ project, library, work }) => {
    symlinkSync(work, join(project, "link"));
    plant(project, library, [
      { name: "lib/objects", path: "link/neighbour" },
      { name: "other", path: "link/neighbour" },
    ]);
  },
  "a tracked link itself": ({ project, library, neighbour }) => {
    symlinkSync(neighbour, join(project, "link"));
    plant(project, library, [
      { name: "lib/objects", path: "link" },
      { name: "more", path: "link" },
    ]);
  },
  "a name with ..": ({ project, library, neighbour }) =>
    plant(project, library, [
      { name: "../../../hooks", path: "lib" },
      { name: `x/../../${upTo(neighbour)}`, path: "lib2" },
    ]),
  "names of git's own": ({ project, library }) =>
    plant(project, library, [
      { name: "lib/objects", path: ".git/objects" },
      { name: "lib/refs", path: ".GIT" },
      { name: "lib/info", path: "lib/.git" },
    ]),
  "a submodule's own list": (ground) => {
    plant(ground.library, ground.neighbour, [{ name: "inner/objects", path: upTo(ground.neighbour) }], "inner");
    plant(ground.project, ground.library, []);
    git(ground.project, "submodule", "--quiet", "update", "--init", "--recursive");
  },
};

async function makeTree({ home, project }: Ground): Promise<{ repo: Repo; tree: () => Tree; path: string; branch: string }> {
  const { git: walled } = walledGit(home);
  const found = (await openRepo(walled, project))!;
  const folder = join(home, "runs", "r_1");
  const repo = { ...found, git: found.git.with({ writable: [folder] }) };
  const [path, branch] = [join(folder, "worktrees", "run"), "swarm/r_1"];
  await addWorktree(repo, { path, branch, base: found.head! });
  return { repo, path, branch, tree: () => treeOf(repo, path, branch) };
}

/** Allows a UserError; any other error fails the test. */
async function allowUserError(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
  }
}

/** Everything of the user's: the neighbours, and the checkout with its branches, settings and submodules. */
function userFiles({ work, project }: Ground): Record<string, string> {
  const isOurs = (name: string) =>
    /^project\/\.git\/(?:worktrees|objects|refs\/(?:heads\/)?swarm|logs\/refs\/heads\/swarm)/.test(name);
  expect(existsSync(join(project, "README.md"))).toBe(true);
  return Object.fromEntries(
    Object.entries(fingerprint(work)).filter(
      ([name]) => !isOurs(name) && !/^project\/\.git(?:\/logs\/refs\/heads|\/refs\/heads|\/refs)?$/.test(name),
    ),
  );
}

test.each(Object.keys(HOSTILE))(
  "a repository that names %s does not touch its neighbours",
  async (kind) => {
    const ground = makeGround();
    HOSTILE[kind]?.(ground);
    const before = userFiles(ground);
    const { repo, path, branch, tree } = await makeTree(ground);
    expect(readFileSync(join(path, "README.md"), "utf8")).toBe("A project.\n");
    expect(readFileSync(join(path, "lib", "lib.txt"), "utf8")).toBe("library\n");
    // Twice, to also run the cleanup after an interrupted git.
    rmSync(join(path, "README.md"));
    await addWorktree(repo, { path, branch, base: repo.head! });
    writeFileSync(join(path, "work.txt"), "work\n");
    const { commit } = await commitAll(repo, tree(), "work");
    writeFileSync(join(path, "left.txt"), "left\n");
    await setAside(tree(), "refs/swarm/r_1/aside");
    await mergeInto(repo, tree(), { commit, message: "merged" });
    expect(git(ground.project, "ls-tree", "-r", "--name-only", branch).split("\n")).toContain("work.txt");
    expect(git(ground.project, "log", "--all", "-p")).not.toContain("changed and not committed");
    expect(await removeWorktree(repo, path, branch, { evenWithWork: true })).toBe("removed");
    expect(userFiles(ground)).toEqual(before);
  },
  60_000,
);

test.each(Object.keys(HOSTILE))("in a repository that names %s only the valid submodule counts", async (kind) => {
  const ground = makeGround();
  HOSTILE[kind]?.(ground);
  const { git: walled } = walledGit(ground.home);
  expect(await submodulesOf(walled, ground.project)).toEqual([{ name: "lib", folder: "lib" }]);
  const inner = await submodulesOf(walled, join(ground.project, "lib"));
  expect(inner.filter(({ name }) => name !== "inner")).toEqual([]);
});

test.each([
  ["lib/objects", "one"],
  ["LIB/refs", "one"],
  ["../../../hooks", "one"],
  ["x/../y", "one"],
  [".git", "one"],
  ["-q", "one"],
  ["one", "-q"],
])("a commit in the index under the name %j at %j is no submodule", async (name, folder) => {
  const { project, library, home } = makeGround();
  plant(project, library, [{ name, path: folder }]);
  git(project, "update-index", "--add", "--cacheinfo", `160000,${git(library, "rev-parse", "HEAD")},${folder}`);
  expect(git(project, "ls-files", "--stage", "--", `./${folder}`)).toContain("160000");
  const { git: walled } = walledGit(home);
  expect((await submodulesOf(walled, project)).map(({ folder: at }) => at)).toEqual(["lib"]);
});

test("a submodule whose .git leads elsewhere is ignored, so no commit is pushed there", () => {
  const { project, library, neighbour, work } = makeGround();
  plant(project, library, []);
  const at = () => submoduleAt({ root: project, commonDir: join(project, ".git") }, "lib");
  expect(at()).toBe(join(project, ".git", "modules", "lib"));
  const marker = join(project, "lib", ".git");
  for (const place of [join(neighbour, ".git"), `../../neighbour/.git`, join(work, "nothing"), ""]) {
    writeFileSync(marker, `gitdir: ${place}\n`);
    expect([place, at()]).toEqual([place, undefined]);
  }
  rmSync(marker);
  symlinkSync(join(neighbour, ".git"), marker);
  expect(at()).toBeUndefined();
});

test("a submodule swapped for a link while it is saved is not committed", async () => {
  const ground = makeGround();
  plant(ground.project, ground.library, []);
  const { repo, path, tree } = await makeTree(ground);
  writeFileSync(join(path, "lib", "work.txt"), "work\n");
  const before = userFiles(ground);
  const { git: plain } = tree();
  const exchanging = {
    ...plain,
    with: (options: Parameters<typeof plain.with>[0]) => {
      const own = plain.with(options);
      const must: typeof own.must = async (...call) => {
        const said = await own.must(...call);
        if (call[1][0] === "add" && !lstatSync(join(path, "lib")).isSymbolicLink()) {
          renameSync(join(path, "lib"), join(path, "lib-before"));
          symlinkSync(ground.neighbour, join(path, "lib"));
        }
        return said;
      };
      return { ...own, must };
    },
  };
  const saving = saveSubmodules({ ...tree(), git: exchanging }, "work", repo);
  await expect(saving).rejects.toThrow(/was replaced while it was saved/);
  expect(userFiles(ground)).toEqual(before);
});

/** What an agent may do to its worktree before its work is saved. */
const AGENTS: Readonly<Record<string, (ground: Ground, path: string) => void>> = {
  "replaces a submodule with a link": ({ neighbour }, path) => {
    rmSync(join(path, "lib"), { recursive: true });
    symlinkSync(neighbour, join(path, "lib"));
  },
  "puts a link above a repository in the index": ({ work }, path) => {
    rmSync(join(path, "deep"), { recursive: true, force: true });
    symlinkSync(work, join(path, "deep"));
  },
  "points a submodule at another repository": ({ neighbour }, path) =>
    writeFileSync(join(path, "lib", ".git"), `gitdir: ${join(neighbour, ".git")}\n`),
  "points its worktree at another repository": ({ neighbour }, path) =>
    writeFileSync(join(path, ".git"), `gitdir: ${join(neighbour, ".git")}\n`),
  "makes repositories and links to them": ({ neighbour }, path) => {
    git(path, "init", "-q", join(path, "made"));
    symlinkSync(neighbour, join(path, "made", "link"));
    symlinkSync("made", join(path, "again"));
  },
};

test.each(Object.keys(AGENTS))(
  "an agent that %s cannot get neighbours' files committed, moved or deleted",
  async (kind) => {
    const ground = makeGround();
    plant(ground.project, ground.library, []);
    // A repository in the index that `.gitmodules` does not list.
    git(
      ground.project,
      "update-index",
      "--add",
      "--cacheinfo",
      `160000,${git(ground.library, "rev-parse", "HEAD")},deep/neighbour`,
    );
    git(ground.project, "commit", "-q", "-m", "a link");
    const { repo, path, branch, tree } = await makeTree(ground);
    const before = userFiles(ground);
    for (const save of [
      () => setAside(tree(), "refs/swarm/r_1/aside"),
      () => commitAll(repo, tree(), "work"),
      () => addWorktree(repo, { path, branch, base: repo.head!, kept: true }),
    ]) {
      AGENTS[kind]?.(ground, path);
      writeFileSync(join(path, "work.txt"), `${save}\n`);
      await allowUserError(save);
      expect(userFiles(ground)).toEqual(before);
      rmSync(join(path, "made"), { recursive: true, force: true });
      rmSync(join(path, "again"), { force: true });
    }
    const all = git(ground.project, "log", "--all", "-p", "--", ".");
    expect(all).toContain("work.txt");
    expect(all).not.toContain("changed and not committed");
    await allowUserError(() => removeWorktree(repo, path, branch, { evenWithWork: true }));
    expect(existsSync(path)).toBe(false);
    expect(userFiles(ground)).toEqual(before);
  },
  60_000,
);

test("copying dependencies follows no link in the checkout or the worktree, and neither does the project's own folder", async () => {
  const ground = makeGround();
  const { neighbour, project } = ground;
  mkdirSync(join(neighbour, "node_modules"));
  writeFileSync(join(neighbour, "node_modules", "x"), "userFiles\n");
  const { path } = await makeTree(ground);
  mkdirSync(join(project, "packages", "a", "node_modules"), { recursive: true });
  writeFileSync(join(project, "packages", "a", "node_modules", "y"), "ours\n");
  const before = fingerprint(neighbour);
  const signal = new AbortController().signal;
  const names = ["packages/a/node_modules", "../neighbour/node_modules", "b/node_modules", `${upTo(neighbour)}/node_modules`];
  symlinkSync(neighbour, join(project, "b"));
  mkdirSync(join(path, "b"));
  mkdirSync(join(path, "packages"));
  rmSync(join(neighbour, "node_modules"), { recursive: true });
  const without = fingerprint(neighbour);
  symlinkSync(neighbour, join(path, "packages", "a"));
  await bring({ from: project, to: path, names, scratch: join(path, "..", ".."), share: false, signal });
  expect(fingerprint(neighbour)).toEqual(without);
  expect(readdirSync(join(path, "b"))).toEqual([]);
  rmSync(join(path, "packages", "a"));
  mkdirSync(join(path, "packages", "a"));
  await bring({ from: project, to: path, names, scratch: join(path, "..", ".."), share: false, signal });
  expect(readFileSync(join(path, "packages", "a", "node_modules", "y"), "utf8")).toBe("ours\n");
  expect(Object.keys(before).length).toBeGreaterThan(Object.keys(without).length);
  symlinkSync(neighbour, join(path, "sub"));
  expect(() => placeBelow(path, "sub/deeper")).toThrow(/is no folder in/);
  expect(fingerprint(neighbour)).toEqual(without);
});

test("a folder constantly swapped for a link while it is moved aside and deleted leads nowhere else", async () => {
  const { work, neighbour, home } = makeGround();
  const run = join(home, "runs", "r_1");
  const path = join(run, "worktrees", "run");
  const [own, link] = [join(run, "own"), join(run, "link")];
  const before = fingerprint(neighbour);
  mkdirSync(run, { recursive: true });
  symlinkSync(work, link);
  // Both folders at this path contain neighbour/.git: the agent's copy, and the neighbour's own.
  const swapped = join(path, "swapped");
  mkdirSync(join(swapped, "neighbour", ".git"), { recursive: true });
  for (let at = 0; at < 300; at += 1) writeFileSync(join(swapped, "neighbour", `f${at}`), "");
  const swapping = await swapper(swapped, own, link, onTestFinished);
  let moved = 0;
  const end = Date.now() + 3_000;
  while (Date.now() < end) {
    if (moveAside(path, "swapped/neighbour", ".git") === undefined) continue;
    moved += 1;
    for (const place of [swapped, own]) {
      try {
        mkdirSync(join(place, "neighbour", ".git"));
      } catch {
        // The agent's folder is elsewhere right now, or this is the neighbour's.
      }
    }
  }
  expect(moved).toBeGreaterThan(0);
  expect(fingerprint(neighbour)).toEqual(before);
  for (let round = 0; round < 5; round += 1) await removeTree(join(path, "swapped")).catch(() => undefined);
  await removeTree(path).catch(() => undefined);
  swapping.kill("SIGKILL");
  expect(fingerprint(neighbour)).toEqual(before);
}, 60_000);

test("a tree with read-only folders is made writable for deletion without following its links", async () => {
  const { neighbour, home } = makeGround();
  const before = fingerprint(neighbour);
  const program = await bundled(join(packageRoot, "test", "support", "tree-remover.ts"));
  const top = join(home, "top");
  mkdirSync(join(top, "tree", "closed"), { recursive: true });
  writeFileSync(join(top, "tree", "closed", "file"), "x");
  symlinkSync(neighbour, join(top, "tree", "closed", "link"));
  symlinkSync(neighbour, join(top, "alone"));
  for (const place of [home, join(neighbour, "..")]) give(place);
  chmodSync(join(top, "tree", "closed"), 0o500);
  chmodSync(join(neighbour, "src"), 0o500);
  const closed = fingerprint(neighbour);
  const asNobody = [join(packageRoot, "test", "support", "as-nobody.mjs"), program];
  execFileSync(process.execPath, [...asNobody, join(top, "tree"), join(top, "alone")]);
  expect(readdirSync(top)).toEqual([]);
  expect(fingerprint(neighbour)).toEqual(closed);
  expect(Object.keys(closed)).toEqual(Object.keys(before));
});

/** Changes the owner of everything in a folder to an ordinary user. */
function give(folder: string): void {
  if (process.getuid?.() === 0) execFileSync("chown", ["-Rh", "65534:65534", folder]);
}
