import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import type { Git } from "../../git/command.ts";
import { type Hindrance, lfsHindrance, usesLfs } from "../../git/lfs.ts";
import { openRepo, type Repo, refuseReadOnly } from "../../git/repository.ts";
import { measureFolder } from "../../git/shadow.ts";
import { submoduleHindrance } from "../../git/submodules.ts";
import { usageError } from "../../lib/errors.ts";
import { namedList } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import { sizeText } from "../../lib/size.ts";
import { isWithin } from "../../lib/within.ts";
import { branchOf, type InspectedProject } from "../workspace/workspace.ts";

/** Outside git a run keeps a copy of the folder; a larger copy is only made on request. */
export const COPY_LIMIT = { files: 50_000, bytes: 500_000_000 };

export interface PreflightDeps {
  git: Git;
  env: NodeJS.ProcessEnv;
}

export interface Preflight {
  projectPath: string;
  docDir: string;
  /** The documents that will be written there; `*` matches anything. */
  documents: readonly string[];
  /** Whether to work on a branch, if there is a repository. */
  onBranch: boolean;
  /** The person knows that the folder is large. */
  large: boolean;
}

/** What is known about a project before a run begins there. */
export interface Found {
  /** Notes for the person. */
  notes: string[];
  inspected: InspectedProject;
}

/** Git's answers about a project, asked before the run's work is known. Only a caller that awaits an answer gets its failure. */
export interface ProjectInspection {
  repo: Promise<Repo | undefined>;
  branch: Promise<string>;
  usesLfs: Promise<boolean>;
}

/** In sequence: running in an existing shell costs git less than starting another one. */
export function inspectProject(git: Git, projectPath: string, runId: string): ProjectInspection {
  const repo = openRepo(git, projectPath);
  const branch = repo.then(() => branchOf(git, projectPath, runId));
  const hasLfs = branch.then(async () => Boolean((await repo)?.head) && usesLfs(git, projectPath));
  const look = { repo, branch, usesLfs: hasLfs };
  for (const answer of Object.values<Promise<unknown>>(look)) answer.catch(() => undefined);
  return look;
}

/** Refuses a project that a run could not work on, before anything of the run exists; otherwise returns what it learned. */
export async function preflight({ git, env }: PreflightDeps, about: Preflight, look: ProjectInspection): Promise<Found> {
  const { projectPath, docDir, documents, onBranch } = about;
  const names = documents.map((name) => join(docDir, name));
  const repo = await look.repo;
  const inspected = { repo, branch: await look.branch };
  if (!repo) return { notes: await outside(git, env, about, names), inspected };
  if (onBranch) refuseReadOnly(repo);
  const lfs = async (): Promise<Hindrance> => ((await look.usesLfs) ? lfsHindrance(repo, env) : {});
  const [found] = await Promise.all([
    onBranch ? Promise.all([submoduleHindrance(repo), lfs()]) : [],
    look.usesLfs.then(() => refuseTracked(git, projectPath, names)),
    onBranch && refuseUncommitted(repo, projectPath),
  ]);
  const refused = found.flatMap((each) => each.refused ?? []);
  if (refused.length > 0) throw usageError(`Nothing was begun. ${refused.join("\n")}`);
  return { notes: found.flatMap((each) => each.note ?? []), inspected };
}

/** Refuses to plan if the plan would overwrite committed files. */
export async function preflightPlan(
  git: Git,
  { projectPath, docDir, documents }: Omit<Preflight, "onBranch" | "large">,
): Promise<void> {
  const repo = await openRepo(git, projectPath);
  const names = documents.map((name) => join(docDir, name));
  if (repo) await refuseTracked(git, projectPath, names);
}

async function outside(
  git: Git,
  env: NodeJS.ProcessEnv,
  { projectPath, large }: Preflight,
  leftOut: readonly string[],
): Promise<string[]> {
  const home = realOf(env.HOME || homedir());
  const isHome = [home, realOf(homedir())].some((each) => isWithin(projectPath, each));
  if (dirname(projectPath) === projectPath || isHome)
    throw usageError(
      `${projectPath}: ${projectPath === home ? "is a home folder" : "is a root or holds home folders"}, and in no git repository. Nothing was begun. Change to the project's own folder, or make one: git init`,
    );
  const size = await measureFolder(git, projectPath, leftOut);
  const told = size ? `${size.files} files, ${sizeText(size.bytes)}` : "more files than can be listed";
  const limit = `${COPY_LIMIT.files} files or ${sizeText(COPY_LIMIT.bytes)}`;
  if (!large && (!size || size.files > COPY_LIMIT.files || size.bytes > COPY_LIMIT.bytes))
    throw usageError(
      `${projectPath}: is in no git repository, so a run keeps a copy of it: ${told}, more than ${limit}. Nothing was begun. Name what is not to be copied in a .gitignore, make it a repository (git init), or add --yes.`,
    );
  return [
    `${projectPath} is in no git repository: the work is done in place, and a copy of it is kept beside the run (${told}).`,
  ];
}

/** Documents must not overwrite committed files. */
async function refuseTracked(git: Git, projectPath: string, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const listed = await git.must(projectPath, ["ls-files", "-z", "--", ...names.map((name) => `:(glob)${name}`)]);
  const tracked = listed.split("\0").filter((name) => name !== "");
  if (tracked.length === 0) return;
  throw usageError(
    `DOC_DIR: ${namedList(tracked, 10)}: git tracks ${tracked.length === 1 ? "it" : "them"}, and documents would be written over ${tracked.length === 1 ? "it" : "them"}. Nothing was begun. Set DOC_DIR to a folder without such files, for example DOC_DIR=${dirname(names[0]!)}/swarm, or have git forget them: git rm --cached ${tracked.slice(0, 3).join(" ")}`,
  );
}

/** A subfolder without any committed file would be empty for the agents. */
async function refuseUncommitted({ git, root, prefix, head }: Repo, projectPath: string): Promise<void> {
  if (prefix === "" || head === null) return;
  if ((await git.must(root, ["ls-tree", "--full-tree", head, "--", `${prefix}/`])) !== "") return;
  throw usageError(
    `${projectPath}: nothing of ${relative(root, projectPath)} is committed in the repository ${root}, and a run works from the last commit. Nothing was begun. Commit it, make it a repository of its own (git init), or say parallel: false in the implement phase to work in place.`,
  );
}
