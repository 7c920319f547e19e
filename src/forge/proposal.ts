import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { openRepo } from "../git/repository.ts";
import { weakenedBetween } from "../git/weakened-tests.ts";
import { missing, UserError } from "../lib/errors.ts";
import { type Linked, pullText, titleOf, type Work } from "./text.ts";

/** The work of a run or a task in one project. */
export interface OwnedWork {
  work: Work;
  projectPath: string;
  branch: string;
  /** The commit that the work started from. */
  base: string;
  /** Whether all reviews approved the work; otherwise the pull request is opened as a draft. */
  isApproved: boolean;
  /** Whether the work is known to have changed nothing in this project. */
  isUnchanged?: boolean;
}

/** What to push, and the pull request's text. */
export interface Proposal {
  /** The repository's object directory. */
  objects: string;
  branch: string;
  commit: string;
  title: string;
  body: string;
  /** The diffstat of the changed files. */
  files: string;
}

const TEMPLATE = /^(?:\.github\/|\.gitea\/|\.forgejo\/|docs\/)?pull_request_template\.(?:md|txt)$/i;
const PLACES = [".github/", ".gitea/", ".forgejo/", "docs/"];
const LONGEST_TEMPLATE = 20_000;

/** Thrown if the branch has no commits of its own. */
export class NothingToPropose extends UserError {
  constructor(message: string) {
    super(message, { trouble: "conflict" });
  }
}

/** Reads from the repository what to propose. `together` lists the pull requests of the same work. */
export async function readProposal(
  git: Git,
  { work, projectPath, branch, base, isUnchanged = false }: OwnedWork,
  together: readonly Linked[] = [],
): Promise<Proposal> {
  if (isUnchanged) throw new NothingToPropose(`The work changed nothing in ${projectPath}, so there is nothing to propose.`);
  const repo = await openRepo(git, projectPath);
  if (!repo) throw new UserError(`${projectPath} is no git repository, so nothing can be pushed from it.`);
  const read = (args: readonly string[]) => repo.git.must(repo.root, args, { maxOutput: 200_000 });
  const found = await repo.git.run(repo.root, ["rev-parse", "--verify", "-q", `refs/heads/${branch}^{commit}`]);
  const commit = found.stdout.trim();
  if (found.code !== 0 || !/^[0-9a-f]{40,64}$/.test(commit))
    throw missing(`The branch ${branch} is not there any more, so there is nothing to push.`);
  if (!/^[0-9a-f]{40,64}$/.test(base)) throw new UserError("It is not known which commit the work began from.");
  const [tree, subjects, files, weakened, template] = await Promise.all([
    read(["rev-parse", `${commit}^{tree}`]),
    read(["log", "-n", "30", "--no-merges", "--format=%s", `${base}..${commit}`]),
    read(["diff", "--stat=100", "--stat-count=40", base, commit]),
    weakenedBetween(repo.git, repo.root, base, commit),
    templateOf(repo.git, repo.root, base),
  ]);
  const commits = subjects.split("\n").filter((line) => line.trim() !== "");
  if (commits.length === 0)
    throw new NothingToPropose(`${branch} holds no commit of its own in ${projectPath}, so there is nothing to propose.`);
  return {
    objects: join(repo.commonDir, "objects"),
    ...{ branch, commit, files },
    title: titleOf(commits.at(-1) ?? ""),
    body: pullText({ work, projectPath, together, commits, files, tree, weakened, template }),
  };
}

/** The repository's own pull request template, as it was before the work. */
async function templateOf(git: Git, root: string, base: string): Promise<string | undefined> {
  const listed = await git.run(root, ["ls-tree", "-z", "--name-only", "--full-tree", base, "--", ...PLACES]);
  const top = await git.run(root, ["ls-tree", "-z", "--name-only", "--full-tree", base]);
  const names = [...listed.stdout.split("\0"), ...top.stdout.split("\0")];
  const name = names.find((each) => TEMPLATE.test(each));
  if (name === undefined) return undefined;
  const shown = await git.run(root, ["cat-file", "blob", `${base}:${name}`], { maxOutput: LONGEST_TEMPLATE });
  return shown.code === 0 && shown.stdout.trim() !== "" ? shown.stdout : undefined;
}
