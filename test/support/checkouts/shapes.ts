import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ODDITIES } from "../oddities.ts";
import { ON_BRANCH } from "../swarm/pipelines.ts";

/** A checkout as a user may have it. All of the user's files are below one folder. */
export interface Shape {
  /** The folder in which IO is asked to work. */
  project: string;
  /** The error if IO cannot work there, including what the user can do about it. */
  refused?: RegExp;
  /** Whether the process that the user started is still running. */
  runs?: () => boolean;
  /** Stops what was started for this shape. */
  end?: () => void;
}

export type Make = (top: string) => Shape | Promise<Shape>;

const IDENTITY = ["-c", "user.name=User", "-c", "user.email=user@localhost"];

export function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", [...IDENTITY, "-c", "protocol.file.allow=always", "-c", "safe.directory=*", ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1", GIT_OPTIONAL_LOCKS: "0" },
  }).trim();
}

/** Runs a command that is expected to stop at a conflict. */
function stops(work: () => unknown): void {
  try {
    work();
  } catch {
    return;
  }
  throw new Error("the command was expected to stop at a conflict");
}

export function put(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

function commit(folder: string, files: Readonly<Record<string, string>>, message: string): void {
  put(folder, files);
  git(folder, "add", "-A");
  git(folder, "commit", "-q", "-m", message);
}

const FILES = {
  "README.md": "A project.\n",
  "swarm.config.yaml": `${ON_BRANCH}checks: ["test -f README.md"]\n`,
  "src/app.txt": "app\n",
  "src/other.txt": "other\n",
  "docs/guide.txt": "guide\n",
  ".gitignore": ["*.log", ...Object.keys(ODDITIES).map((_, index) => `/odd-${index}`), ".env", ".venv", "node_modules", ""].join(
    "\n",
  ),
};

/** Creates a repository with two commits and another branch. */
function repository(folder: string, ...how: string[]): string {
  mkdirSync(folder, { recursive: true });
  git(folder, "init", "-q", "-b", "main", ...how);
  commit(folder, { ...FILES, "src/app.txt": "first\n" }, "first");
  git(folder, "branch", "precious");
  commit(folder, FILES, "second");
  return folder;
}

/** Creates two branches that change the same line, and leaves main checked out. */
function clash(folder: string): void {
  git(folder, "switch", "-q", "-c", "theirs");
  commit(folder, { "src/app.txt": "theirs\n" }, "theirs");
  git(folder, "switch", "-q", "main");
  commit(folder, { "src/app.txt": "mine\n" }, "mine");
}

function hooksIn(folder: string, mark: string): void {
  const names = ["pre-commit", "post-commit", "post-checkout", "post-merge", "commit-msg", "reference-transaction"];
  for (const name of [...names, "post-index-change", "prepare-commit-msg"]) {
    put(folder, { [name]: `#!/bin/sh\necho ${name} >> '${mark}'\n` });
    chmodSync(join(folder, name), 0o755);
  }
}

const simple =
  (change: (project: string, top: string) => void, refused?: RegExp): Make =>
  (top) => {
    const project = repository(join(top, "project"));
    change(project, top);
    return { project, ...(refused && { refused }) };
  };

const BEGUN: Record<string, Make> = {
  "changes of every kind that are staged, unstaged and untracked": simple((project) => {
    put(project, { "staged.txt": "staged\n", "intended.txt": "intended\n", "untracked/deep/file.txt": "untracked\n" });
    git(project, "add", "staged.txt");
    git(project, "add", "-N", "intended.txt");
    put(project, { "staged.txt": "staged and changed\n", "src/app.txt": "changed\n", "debug.log": "ignored\n" });
    git(project, "mv", "docs/guide.txt", "docs/moved.txt");
    rmSync(join(project, "src", "other.txt"));
    git(project, "update-index", "--assume-unchanged", "README.md");
    git(project, "update-index", "--skip-worktree", ".gitignore");
    // Only a second look at the content shows that the file has not changed.
    utimesSync(join(project, "README.md"), 1, 1);
  }),
  "two stashes, one with files that were untracked": simple((project) => {
    for (const [at, options] of [[], ["--include-untracked"]].entries()) {
      put(project, { "src/app.txt": `stashed ${at}\n`, [`new-${at}.txt`]: "new\n" });
      git(project, "stash", "push", "-q", ...options, "-m", `stash ${at}`);
    }
    git(project, "clean", "-q", "-f");
  }),
  "a detached head": simple((project) => {
    git(project, "switch", "-q", "--detach", "HEAD~1");
    put(project, { "src/app.txt": "changed\n" });
  }),
  "a merge with conflicts": simple((project) => {
    clash(project);
    stops(() => git(project, "merge", "theirs"));
  }),
  "a rebase that stopped": simple((project) => {
    clash(project);
    stops(() => git(project, "-c", "rebase.autoStash=true", "rebase", "theirs"));
  }),
  "a cherry-pick that stopped, and a bisect": simple((project) => {
    clash(project);
    git(project, "bisect", "start", "HEAD", "HEAD~2");
    git(project, "switch", "-q", "main");
    stops(() => git(project, "cherry-pick", "theirs"));
  }),
  "no commit yet": (top) => {
    const project = join(top, "project");
    mkdirSync(project);
    git(project, "init", "-q", "-b", "main");
    put(project, FILES);
    git(project, "add", "README.md");
    return { project };
  },
};

const KINDS: Record<string, Make> = {
  "a submodule with uncommitted work": (top) => {
    const library = repository(join(top, "library"));
    const project = repository(join(top, "project"));
    git(project, "submodule", "--quiet", "add", library, "vendor/lib");
    git(project, "commit", "-q", "-m", "with a library");
    const inside = join(project, "vendor", "lib");
    commit(inside, { "src/ahead.txt": "ahead\n" }, "a commit that nobody else has");
    git(project, "commit", "-q", "-a", "-m", "a newer library");
    put(inside, { "staged.txt": "staged\n" });
    git(inside, "add", "staged.txt");
    put(inside, { "src/app.txt": "changed\n", "untracked.txt": "untracked\n" });
    return { project };
  },
  "a shallow clone": (top) => {
    repository(join(top, "origin"));
    git(top, "clone", "-q", "--depth=1", `file://${join(top, "origin")}`, "project");
    return { project: join(top, "project") };
  },
  "a clone without the old contents": (top) => {
    const origin = repository(join(top, "origin"));
    git(origin, "config", "uploadpack.allowFilter", "true");
    git(top, "clone", "-q", "--filter=blob:none", `file://${origin}`, "project");
    return { project: join(top, "project") };
  },
  "a sparse clone that never had the rest": (top) => {
    const origin = repository(join(top, "origin"));
    git(origin, "config", "uploadpack.allowFilter", "true");
    git(top, "clone", "-q", "--filter=blob:none", "--sparse", `file://${origin}`, "project");
    const project = join(top, "project");
    git(project, "sparse-checkout", "set", "docs");
    return { project };
  },
  "a sparse checkout by patterns": simple((project) => {
    git(project, "sparse-checkout", "set", "--no-cone", "/*", "!/docs/");
  }),
  "a clone that borrows its objects": (top) => {
    repository(join(top, "origin"));
    git(top, "clone", "-q", "--shared", "origin", "project");
    return { project: join(top, "project") };
  },
  "a repository in a folder of its own": (top) => {
    const project = repository(join(top, "project"), `--separate-git-dir=${join(top, "elsewhere.git")}`);
    return { project };
  },
  "hashes of 256 bits": (top) => ({ project: repository(join(top, "project"), "--object-format=sha256") }),
  "line ends by attributes and settings": simple((project) => {
    git(project, "config", "core.autocrlf", "true");
    commit(
      project,
      { ".gitattributes": "*.sh text eol=lf\n*.bat text eol=crlf\n", "a.sh": "a\n", "b.bat": "b\r\n" },
      "line ends",
    );
    // Files from before the attributes were added. Git would report them as changed if it looked again.
    put(project, { "mixed.txt": "one\r\ntwo\n", "src/app.txt": "app\r\n" });
    git(project, "-c", "core.autocrlf=false", "add", "mixed.txt");
  }),
  "names that few expect": simple((project) => {
    const names = [
      "two\nlines.txt",
      "-n",
      "--force",
      "ünï.txt",
      "u\u0308.txt",
      "Same.txt",
      "same.txt",
      'a"b\\c.txt',
      " edge ",
      "tab\t.txt",
    ];
    put(project, Object.fromEntries(names.map((name) => [`odd/${name}`, `${name}\n`])));
    put(project, { ":(top)x": "magic\n", "*.txt": "star\n", "-rf": "dash\n" });
    git(project, "add", "-A");
    git(project, "commit", "-q", "-m", "odd names");
    put(project, { "odd/two\nlines.txt": "changed\n", "odd/more\nlines.txt": "untracked\n" });
  }),
  "an index that is split, watched and of version 4": simple((project) => {
    for (const [name, value] of [
      ["core.untrackedCache", "true"],
      ["core.fsmonitor", "true"],
      ["index.version", "4"],
      ["feature.manyFiles", "true"],
    ] as const)
      git(project, "config", name, value);
    git(project, "-c", "core.fsmonitor=false", "update-index", "--split-index", "--untracked-cache");
    put(project, { "src/app.txt": "changed\n", "untracked.txt": "untracked\n" });
    git(project, "-c", "core.fsmonitor=false", "add", "src/app.txt");
  }),
  "branches called swarm and io, notes, a replacement and packed refs": simple((project) => {
    for (const name of ["swarm", "io"]) git(project, "branch", name);
    git(project, "notes", "add", "-m", "a note", "HEAD");
    git(project, "replace", "HEAD~1", git(project, "commit-tree", "-m", "another first", "HEAD~1^{tree}"));
    git(project, "tag", "-a", "v1", "-m", "v1");
    git(project, "pack-refs", "--all");
    git(project, "gc", "-q");
  }),
};

const LAYOUTS: Record<string, Make> = {
  "a worktree of the user's": (top) => {
    const main = repository(join(top, "main"));
    const project = join(top, "project");
    git(main, "worktree", "add", "-q", "-b", "feature", project);
    put(project, { "src/app.txt": "changed\n" });
    put(main, { "src/app.txt": "changed here too\n" });
    git(main, "add", "-A");
    return { project };
  },
  "other worktrees: one locked, one on a disk that is away, one deleted": simple((project, top) => {
    for (const name of ["locked", "away", "deleted", "used"]) git(project, "worktree", "add", "-q", "-b", name, join(top, name));
    git(project, "worktree", "lock", "--reason", "on a stick", join(top, "locked"));
    renameSync(join(top, "away"), join(top, "moved"));
    rmSync(join(top, "deleted"), { recursive: true });
    put(join(top, "used"), { "src/app.txt": "changed\n" });
    for (const name of ["away", "deleted"]) utimesSync(join(project, ".git", "worktrees", name, "index"), 1, 1);
  }),
  "a bare repository with worktrees beside": (top) => {
    repository(join(top, "origin"));
    git(top, "clone", "-q", "--bare", "origin", "work/.bare");
    put(join(top, "work"), { ".git": "gitdir: ./.bare\n" });
    git(join(top, "work"), "worktree", "add", "-q", "main");
    return { project: join(top, "work", "main") };
  },
  "a folder of a larger repository": (top) => {
    const whole = join(top, "whole");
    mkdirSync(whole);
    git(whole, "init", "-q", "-b", "main");
    put(join(whole, "packages", "one"), FILES);
    commit(whole, { "packages/two/a.txt": "two\n", "top.txt": "top\n" }, "first");
    put(whole, { "packages/two/a.txt": "changed\n", "packages/one/untracked.txt": "untracked\n" });
    return { project: join(whole, "packages", "one") };
  },
  "a path that leads through a link": (top) => {
    repository(join(top, "real", "project"));
    symlinkSync("real", join(top, "link"));
    return { project: join(top, "link", "project") };
  },
  "a repository of the user's inside that git does not know": simple((project) => {
    repository(join(project, "inner"));
    put(join(project, "inner"), { "src/app.txt": "changed\n" });
  }),
  "hooks that leave marks": simple((project, top) => hooksIn(join(project, ".git", "hooks"), join(top, "mark"))),
  "hooks in a folder of the project": simple((project, top) => {
    hooksIn(join(project, ".husky"), join(top, "mark"));
    git(project, "add", "-A");
    git(project, "commit", "-q", "-m", "husky");
    git(project, "config", "core.hooksPath", ".husky");
  }),
  "filters that leave marks": simple((project) => {
    commit(project, { ".gitattributes": "*.bin filter=mark merge=mark\n", "a.bin": "content\n" }, "filtered");
    const mark = (what: string) => `echo ${what} >> '${join(project, "mark")}'; cat`;
    git(project, "config", "filter.mark.clean", mark("clean"));
    git(project, "config", "filter.mark.smudge", mark("smudge"));
  }),
  "large files in Git LFS": simple((project) => {
    git(project, "lfs", "install", "--local");
    commit(project, { ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": "the large content\n" }, "large");
    put(project, { "b.bin": "not committed\n" });
    git(project, "add", "b.bin");
  }),
  "settings that sign, ask, include and clean up": simple((project, top) => {
    put(top, { "more.gitconfig": "[gc]\n\tauto = 1\n[core]\n\teditor = false\n", template: "a template\n" });
    const settings = {
      "include.path": "../../more.gitconfig",
      "commit.template": join(top, "template"),
      "gc.pruneExpire": "now",
    };
    const more = { "commit.gpgSign": "true", "gpg.program": "false", "gc.worktreePruneExpire": "now", "rerere.enabled": "true" };
    const yetMore = { "core.sharedRepository": "group", "core.logAllRefUpdates": "always", "gc.reflogExpire": "now" };
    for (const [name, value] of Object.entries({ ...settings, ...more, ...yetMore })) git(project, "config", name, value);
  }),
  "files and folders that only some may read": simple((project) => {
    chmodSync(join(project, "README.md"), 0o600);
    chmodSync(join(project, "src", "app.txt"), 0o444);
    git(project, "config", "core.fileMode", "false");
    chmodSync(join(project, "src", "other.txt"), 0o777);
    chmodSync(join(project, "docs"), 0o555);
  }),
};

const CLOSED: Record<string, Make> = {
  "a process of the user's, and the lock of a git that was cut off": async (top) => {
    const project = repository(join(top, "project"));
    put(project, { "src/app.txt": "changed\n", ".git/index.lock": "", "server.log": "" });
    const child = spawn("tail", ["-f", "server.log"], { cwd: project, stdio: "ignore" });
    return { project, runs: () => child.exitCode === null && child.signalCode === null, end: () => void child.kill() };
  },
  "a checkout and a repository that cannot be written": simple((project) => {
    execFileSync("chmod", ["-R", "a-w", project]);
  }, /cannot be written \(EACCES\).*Nothing was begun\. Make it writable/),
  "an index that is damaged": simple((project) => {
    writeFileSync(join(project, ".git", "index"), "damaged");
  }, /git refuses .*Mend it until "git status" works there/s),
  "a format that this git does not know": simple((project) => {
    git(project, "config", "core.repositoryFormatVersion", "1");
    git(project, "config", "extensions.ofTomorrow", "true");
  }, /git refuses .*Mend it until "git status" works there/s),
};

/**
 * What may be at an ignored path: one shape for each kind of entry, both under meaningless names and where dependencies are
 * installed.
 */
const IGNORED: Record<string, Make> = Object.fromEntries(
  Object.entries(ODDITIES).map(([kind, make], index) => [
    `an ignored ${kind}`,
    async (top: string): Promise<Shape> => {
      const project = repository(join(top, "project"));
      const aside = join(top, "aside");
      put(aside, { file: "aside\n" });
      const names = [`odd-${index}`, ".env", ".venv", "node_modules"];
      const servers = await Promise.all(names.map((name) => make(join(project, name), aside)));
      return { project, end: () => servers.forEach((server) => void server?.close()) };
    },
  ]),
);

export const SHAPES: Readonly<Record<string, Make>> = { ...BEGUN, ...KINDS, ...LAYOUTS, ...CLOSED, ...IGNORED };
