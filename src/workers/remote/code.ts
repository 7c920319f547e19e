import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { snapshotOf } from "../../git/aside.ts";
import { makeBundle, takeBundle } from "../../git/bundles.ts";
import { isAncestor, setRef } from "../../git/refs.ts";
import type { Repo } from "../../git/repository.ts";
import { treeOf } from "../../git/worktrees.ts";
import { UserError } from "../../lib/errors.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { quoted } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import type { BlobRef, Blobs, JobEnd } from "../jobs/port.ts";

/** A worktree of the daemon whose work can be done on another host. */
export interface Worktree {
  repo: Repo;
  /** The top of the worktree. */
  path: string;
  /** A folder for IO's temporary files. */
  scratch: string;
}

/** Whether commits carry all of its files: those of submodules and filters they do not. */
export function canTravel({ path }: Pick<Worktree, "path">): boolean {
  if (existsSync(join(path, ".gitmodules"))) return false;
  return !/\bfilter=/.test(smallTextAt(join(path, ".gitattributes"), 1_000_000) ?? "");
}

/** Identifies the repository, wherever its worktrees are. */
export const projectOf = ({ commonDir }: Pick<Repo, "commonDir">): string =>
  createHash("sha256").update(realOf(commonDir)).digest("hex").slice(0, 16);

/** Jobs that end together delete their refs together, and by default git waits only a second for another's lock. */
const PATIENT = ["core.packedRefsTimeout=30000", "core.filesRefLockTimeout=30000"];

const refOf = (job: string) => `refs/io/away/${job}`;

/** Stores the current files as a commit on top of HEAD, with a ref that keeps it as long as the job needs it. */
export async function captureFiles({ repo, path, scratch }: Worktree, job: string): Promise<string> {
  const tree = treeOf(repo, path, "");
  const git = tree.git.with({ writable: [scratch] });
  const [head, status] = await Promise.all([
    git.must(path, ["rev-parse", "HEAD"]),
    git.must(path, ["status", "--porcelain", "--untracked-files=all"]),
  ]);
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  // In the sandbox a folder has its real path.
  const told = { on: [head], folder: realOf(scratch), message: "The files as they were" } as const;
  const commit = status === "" ? head : await snapshotOf({ path, git }, told);
  await setRef(repo, refOf(job), commit);
  return commit;
}

/** Puts what the worker lacks of a commit into a blob; null if the worker has all of it. */
export async function sendCode(
  { repo, scratch }: Worktree,
  commit: string,
  known: readonly string[],
  { blobs, name }: { blobs: Blobs; name: string },
): Promise<BlobRef | null> {
  const here = await Promise.all(
    known.map(async (each) => ((await repo.git.run(repo.root, ["cat-file", "-e", `${each}^{commit}`])).code === 0 ? [each] : [])),
  );
  const bytes = await makeBundle({ ...repo, scratch: join(scratch, "bundles") }, { commit, known: here.flat() });
  return bytes ? blobs.put(name, bytes) : null;
}

/** Puts the worker's result into the worktree. The caller that saves the work moves the branch. */
export async function applyResult(
  { repo, path, scratch }: Worktree,
  job: { id: string; commit: string },
  end: Extract<JobEnd, { state: "done" }>,
  blobs: (lease: string) => Blobs,
): Promise<void> {
  const last = end.attempts.at(-1);
  if (!end.bundle || !end.commit || end.commit === job.commit || !last) return;
  const ref = `${refOf(job.id)}-${last.epoch}.${last.attempt}`;
  // The daemon may have taken the bundle, and deleted it, before a restart.
  const isHere = (await repo.git.run(repo.root, ["cat-file", "-e", `${end.commit}^{commit}`])).code === 0;
  if (!isHere || !(await isAncestor(repo.git, repo.root, job.commit, end.commit))) {
    const place = { ...repo, scratch: join(scratch, "bundles") };
    await takeBundle(place, await blobs(last.lease).get(end.bundle), { commit: end.commit, base: job.commit, ref });
  }
  await refuseHostileTree(repo, job.commit, end.commit);
  const { git } = treeOf(repo, path, "");
  // Git must compare with the commit that the job started from, even if no branch contained it.
  await git.must(path, ["read-tree", job.commit]);
  await git.must(path, ["read-tree", "-u", "--reset", end.commit]);
  await repo.git.run(repo.root, ["update-ref", "-d", ref, end.commit], { settings: PATIENT });
}

/** The spellings of `.git` that file systems accept, given their rules for case, invisible letters and short names. */
const GIT_NAME = /^(?:\.git|git~\d+)[. ]*(?::.*)?$/i;
const UNSEEN = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

const MOST_CHANGES = 100_000_000;

/**
 * Refuses a result with anything but files, executables and links, or with a name that git or a file system takes for another
 * path.
 */
async function refuseHostileTree({ git, root }: Repo, base: string, commit: string): Promise<void> {
  const options = { maxOutput: MOST_CHANGES };
  const listed = await git.must(root, ["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=d", base, commit], options);
  const fields = listed.split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const mode = fields[at]!.split(" ")[1] ?? "";
    const path = fields[at + 1]!;
    const parts = path.split("/").map((part) => part.replace(UNSEEN, ""));
    const isOdd = parts.some(
      (part) => part === "" || part === "." || part === ".." || GIT_NAME.test(part) || part.includes("\\"),
    );
    if (isOdd || !/^(?:100644|100755|120000)$/.test(mode) || parts[0] === ".gitmodules")
      throw new UserError(
        `A worker's result is refused: it holds ${quoted(path, 200)}, which no job may bring. Nothing of it was taken over.`,
      );
  }
}

/** Deletes the ref that kept the job's commit. */
export async function releaseCommit({ repo }: Worktree, job: string): Promise<void> {
  await repo.git.run(repo.root, ["update-ref", "-d", refOf(job)], { settings: PATIENT });
}
