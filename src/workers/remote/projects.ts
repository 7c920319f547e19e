import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeBundle, takeBundle } from "../../git/bundles.ts";
import type { Git } from "../../git/command.ts";
import { openRepo, type Repo } from "../../git/repository.ts";
import { createSandboxProfiles } from "../../git/sandbox-profiles.ts";
import { addWorktree, commitAll, removeWorktree, treeOf } from "../../git/worktrees.ts";
import { UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { realOf } from "../../lib/real-path.ts";
import type { SandboxProfile } from "../../process/sandbox.ts";
import type { JobAttempt } from "../jobs/port.ts";
import type { Installer } from "./installer.ts";
import { ANSWERS, InnerPath, type PlaceSpec } from "./job-messages.ts";
import { createPathNames, type PathNames } from "./paths.ts";

export interface ProjectsDeps {
  git: Git;
  /** Where projects are kept: outside the data folder, so that git and commands can see them. */
  folder: string;
  installer: Installer;
  log: Log;
}

/** A folder with a job's files, as long as the job runs. */
export interface JobPlace {
  cwd: string;
  sandboxProfile: SandboxProfile;
  names: PathNames;
  /** Dependencies that could not be installed, each with its reason. */
  missing: string[];
  /** Commits what the job left, on top of its starting commit, and bundles it for the daemon. */
  save(message: string): Promise<{ commit: string; tree: string; bundle?: Uint8Array }>;
  close(): Promise<void>;
}

/** How many of its commits a worker names when it asks for another. */
const KNOWN = 20;
const KEPT = "refs/io/kept/";

/** A folder below a worktree, created if missing; refused if a link of the repository leads out of it. */
export function innerFolder(top: string, inner: string): string {
  const path = join(top, InnerPath.parse(inner));
  if (realOf(path) !== join(realOf(top), inner))
    throw new UserError(`"${inner}" is a link, or lies behind one: work begins in no such folder.`);
  mkdirSync(path, { recursive: true });
  return path;
}

/** A worker's cache of projects: their commits and installed dependencies, never a branch. */
export function createProjects({ git, folder, installer, log }: ProjectsDeps) {
  const last = new Map<string, Promise<unknown>>();

  /** Runs one task at a time per key, because tasks share a project's commits. */
  function serialize<T>(project: string, work: () => Promise<T>): Promise<T> {
    const now = (last.get(project) ?? Promise.resolve()).then(work);
    last.set(
      project,
      now.catch(() => undefined),
    );
    return now;
  }

  async function repoOf(project: string, writable: string): Promise<Repo> {
    const root = join(folder, project, "repo");
    if (!existsSync(join(root, ".git"))) {
      mkdirSync(root, { recursive: true, mode: 0o700 });
      await git.with({ writable: [root] }).must(root, ["init", "-q", "--initial-branch=none"]);
    }
    const repo = await openRepo(git, root);
    if (!repo) throw new UserError(`${root} is no repository any more. Delete it and start the worker again.`);
    return { ...repo, git: repo.git.with({ writable: [writable] }) };
  }

  /** Downloads what this worker lacks of a commit. */
  async function fetch(repo: Repo, scratch: string, commit: string, { ask, blobs }: JobAttempt): Promise<void> {
    const { git: own, root } = repo;
    if ((await own.run(root, ["cat-file", "-e", `${commit}^{commit}`])).code === 0) return;
    const kept = await own.must(root, [
      ...["for-each-ref", "--sort=-creatordate", `--count=${KNOWN}`, "--format=%(objectname)", KEPT],
    ]);
    const { bundle } = ANSWERS.code.parse(await ask({ kind: "code", known: kept.split("\n").filter(Boolean) }));
    if (!bundle) throw new UserError("The daemon sent no code.");
    await takeBundle({ ...repo, scratch }, await blobs.get(bundle), { commit, ref: `${KEPT}${commit}`, trusted: true });
  }

  return {
    async open(place: PlaceSpec, job: string, jobAttempt: JobAttempt): Promise<JobPlace> {
      const { project, commit, prefix, height, access, installed } = place;
      const own = join(folder, project, "jobs", `${job}.${jobAttempt.attempt.epoch}.${jobAttempt.attempt.attempt}`);
      const path = join(own, "worktrees", "job");
      mkdirSync(own, { recursive: true, mode: 0o700 });
      const branch = `io/${job}.${jobAttempt.attempt.lease}`;
      const close = () =>
        serialize(project, async () => {
          const found = await repoOf(project, own);
          await removeWorktree(found, path, branch, { evenWithWork: true });
          await found.git.run(found.root, ["update-ref", "-d", `refs/heads/${branch}`]);
          rmSync(own, { recursive: true, force: true });
        }).catch((error: unknown) => log.warn("the files of a job could not be taken away", { job, error }));
      const prepared = prepare().catch(async (error: unknown) => {
        await close();
        throw error;
      });
      return { ...(await prepared), close };

      async function prepare(): Promise<Omit<JobPlace, "close">> {
        const repo = await serialize(project, async () => {
          const found = await repoOf(project, own);
          await fetch(found, join(own, "bundles"), commit, jobAttempt);
          await addWorktree(found, { path, branch, base: commit });
          return found;
        });
        const cwd = innerFolder(path, prefix);
        const sandboxProfile = createSandboxProfiles({ projectPath: repo.root, folder: own, height: height ?? undefined });
        const tree = treeOf(repo, path, branch);
        const kept = join(folder, project, "installed");
        const installing = {
          tree,
          prefix,
          scratch: own,
          kept,
          names: installed,
          profile: sandboxProfile(cwd),
          signal: jobAttempt.signal,
        };
        // Later jobs reuse what one job installs.
        const missing = await serialize(`${project} installed`, () => installer.install(installing));
        const names = createPathNames(place, path, cwd);
        return {
          cwd,
          sandboxProfile: { ...sandboxProfile(cwd), access },
          names,
          missing: missing.map(names.text),
          async save(message) {
            const saved = await commitAll(repo, treeOf(repo, path, branch), message);
            const bundle = await makeBundle(
              { ...repo, scratch: join(own, "bundles") },
              { commit: saved.commit, known: [commit] },
            );
            return { ...saved, ...(bundle && { bundle }) };
          },
        };
      }
    },
  };
}
export type Projects = ReturnType<typeof createProjects>;
