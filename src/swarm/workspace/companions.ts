import { setRef } from "../../git/refs.ts";
import type { Repo } from "../../git/repository.ts";
import { current, type Saved } from "../../git/worktrees.ts";
import type { Journal } from "../steps/journal.ts";
import type { BranchWorkplace, Companion, Worktree } from "./workspace.ts";

/** The file in which a state lists the companions' trees, whose objects are in other repositories. */
const ENTRY = ".io-repositories";

/** A workplace whose states cover all its repositories: one piece of work is reviewed and checked as a whole. */
export function withCompanions(own: BranchWorkplace, companions: readonly Companion[]): BranchWorkplace {
  if (companions.length === 0) return own;
  const { repo } = own;
  const stateWith = async (tree: string): Promise<string> => {
    const now = await Promise.all(companions.map(({ workplace }) => current(workplace.workspace.tree)));
    return combineTrees(
      repo,
      tree,
      now.map((each) => each.tree),
    );
  };
  const workplace = { ...own, companions, stateWith, ownTree: async (state: string) => (await splitState(repo, state)).own };
  return { ...workplace, workspace: includingCompanions(own.workspace, workplace) };
}

/** The state of all repositories when the run began. */
export async function baseState({ repo, baseTree, companions }: BranchWorkplace): Promise<string> {
  if (companions.length === 0) return baseTree;
  return combineTrees(
    repo,
    baseTree,
    companions.map(({ workplace }) => workplace.baseTree),
  );
}

async function combineTrees(repo: Repo, tree: string, others: readonly string[]): Promise<string> {
  const listed = await repo.git.must(repo.root, ["hash-object", "-w", "--stdin"], { input: `${others.join("\n")}\n` });
  return makeTree(repo, [...(await entriesOf(repo, tree)).own, `100644 blob ${listed}\t${ENTRY}`]);
}

/** The trees in a state: that of the run's own repository, and of each companion. */
export async function treesIn({ repo, companions }: Pick<BranchWorkplace, "repo" | "companions">, state: string) {
  if (companions.length === 0) return { own: state, others: [] };
  const { own, links } = await splitState(repo, state);
  return {
    own,
    // A state without companions predates their changes.
    others: companions.map(({ workplace }, index) => links.get(index + 1) ?? workplace.baseTree),
  };
}

/** The same worktree, but saving, comparing and tidying it covers the companions too. */
export function includingCompanions(own: Worktree, of: Pick<BranchWorkplace, "repo" | "companions" | "stateWith">): Worktree {
  const { companions, stateWith } = of;
  if (companions.length === 0) return own;
  const others = companions.map(({ workplace }) => workplace.workspace);
  const save = async (work: (tree: Worktree) => Promise<{ tree: string; commit: string | null }>) => {
    const saved = await work(own);
    for (const each of others) await work(each);
    return { ...saved, tree: await stateWith(saved.tree) };
  };
  const compare = (how: "diff" | "stat") => async (from: string, to: string) => {
    const [before, after] = await Promise.all([treesIn(of, from), treesIn(of, to)]);
    const parts = [await own[how](before.own, after.own)];
    for (const [index, { projectPath, workplace }] of companions.entries()) {
      const [a = "", b = ""] = [before.others[index], after.others[index]];
      if (a !== b) parts.push(`# The repository ${projectPath}:\n${await workplace.workspace[how](a, b)}`);
    }
    return parts.filter((part) => part.trim() !== "").join("\n\n");
  };
  return {
    ...own,
    save: (message) => save((tree) => tree.save(message)),
    saveChanged: (message) => save((tree) => tree.saveChanged!(message)),
    diff: compare("diff"),
    stat: compare("stat"),
    async tidy(label) {
      const refs: string[] = [];
      for (const each of [own, ...others]) refs.push(...((await each.tidy?.(label)) ?? "").split(", "));
      return refs.filter(Boolean).join(", ") || undefined;
    },
  };
}

/** The current commits of the companions. */
export function companionCommits({ companions }: Pick<BranchWorkplace, "companions">): Promise<Saved[]> {
  return Promise.all(companions.map(({ workplace }) => current(workplace.workspace.tree)));
}

/** Resets the companions to earlier commits; a ref of the run keeps what is given up. */
export async function resetCompanions(
  { companions }: Pick<BranchWorkplace, "companions">,
  commits: readonly string[],
  { runId, label }: { runId: string; label: string },
): Promise<void> {
  for (const [index, { workplace }] of companions.entries()) {
    const { tree } = workplace.workspace;
    const to = commits[index];
    const { commit } = await current(tree);
    if (to === undefined) continue;
    if (commit !== to) await setRef(workplace.repo, `refs/swarm/${runId}/${label}`, commit);
    await tree.git.must(tree.path, ["reset", "--hard", "-q", to]);
    await workplace.workspace.tidy?.(label);
  }
}

/** The journal for a companion's steps, beside those of the run's own repository. */
export function companionJournal(journal: Journal, companion: string): Journal {
  const named = <T extends { key: string }>(head: T): T => ({ ...head, key: `${head.key}/${companion}` });
  return {
    ...journal,
    step: (schema, head, inputs, work) => journal.step(schema, named(head), inputs, work),
    put: (head, state, value, reason) => journal.put(named(head), state, value, reason),
  };
}

async function entriesOf({ git, root }: Repo, tree: string): Promise<{ own: string[]; links: Map<number, string> }> {
  const listed = await git.must(root, ["ls-tree", "-z", "--full-tree", tree], { maxOutput: 5_000_000 });
  const lines = listed.split("\0").filter((line) => line !== "");
  const own = lines.filter((line) => !line.endsWith(`\t${ENTRY}`));
  if (own.length === lines.length) return { own, links: new Map() };
  const trees = (await git.must(root, ["cat-file", "blob", `${tree}:${ENTRY}`], { maxOutput: 10_000 })).split("\n");
  if (!trees.every((each) => /^[0-9a-f]{40,64}$/.test(each))) return { own: lines, links: new Map() };
  return { own, links: new Map(trees.map((each, index) => [index + 1, each])) };
}

/** Splits a state into the tree of the run's own repository and those of its companions, by number. */
export async function splitState(repo: Repo, state: string): Promise<{ own: string; links: ReadonlyMap<number, string> }> {
  const { own, links } = await entriesOf(repo, state);
  return { own: links.size === 0 ? state : await makeTree(repo, own), links };
}

function makeTree({ git, root }: Repo, lines: readonly string[]): Promise<string> {
  return git.must(root, ["mktree", "-z", "--missing"], { input: lines.map((line) => `${line}\0`).join("") });
}
