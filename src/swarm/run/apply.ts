import { z } from "zod";
import { applyBranch, type NotApplied } from "../../git/apply.ts";
import type { Git } from "../../git/command.ts";
import { openRepo } from "../../git/repository.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import { quotedForShell } from "../../lib/invocation.ts";
import type { RunContext } from "../context/context.ts";
import { runKeys } from "../steps/keys.ts";
import type { Ending } from "./execute.ts";

/** The branch that was checked out when a run began: its result may only be merged into this one. */
export function branchToApplyTo({ journal, workplace }: Pick<RunContext, "journal" | "workplace">): Promise<string | null> {
  return journal.step(z.string().nullable(), { key: runKeys.checkout, kind: "git", phase: "run" }, {}, async () => ({
    value: workplace.kind === "branch" ? workplace.repo.branch : null,
  }));
}

/** Merges an approved result into the checkout. If it cannot, it returns false, and a note says why and what to type. */
export async function applyTo(target: string | null, context: RunContext, { status, outcome }: Ending): Promise<boolean> {
  const { workplace } = context;
  if (status !== "done") return false;
  const refuse = (why: string, commands: readonly string[] = []) => {
    const typed = commands.length === 0 ? "" : `.\nIn ${whereOf(context)} type:\n  ${commands.join("\n  ")}`;
    context.note(`the result was not merged into the checkout: ${why}${typed}`);
    return false;
  };
  if (workplace.kind === "in place") return refuse("the work was done in place, so it is there already");
  if (outcome === "untested") return refuse("no check that could notice the change came to a verdict");
  if (outcome !== "approved") return refuse("not everything is approved");
  const { repo, branch, base } = workplace;
  const now = await branchNow(repo.git, repo.root);
  if ("why" in now) return refuse(now.why, [`git merge ${branch}`]);
  if (now.branch !== target)
    return refuse(`it was on ${nameOf(target)} when the run began and is on ${nameOf(now.branch)} now`, [
      ...(target === null ? [] : [`git switch ${quotedForShell(target)}`]),
      `git merge ${branch}`,
    ]);
  return context.journal.step(z.boolean(), { key: runKeys.apply, kind: "git", phase: "run" }, { branch }, async () => {
    const not: NotApplied | undefined = await applyBranch({ repo, branch, base, notes: `refs/swarm/${context.runId}/applying` });
    if (not) refuse(not.why, not.commands);
    return { value: not === undefined };
  });
}

async function branchNow(git: Git, root: string): Promise<{ branch: string | null } | { why: string }> {
  try {
    return { branch: (await openRepo(git, root))?.branch ?? null };
  } catch (error) {
    if (error instanceof UserError) return { why: messageOf(error) };
    throw error;
  }
}

function whereOf({ workplace }: RunContext): string {
  return workplace.kind === "branch" ? workplace.repo.root : workplace.workspace.cwd;
}

function nameOf(branch: string | null): string {
  return branch ?? "no branch (detached head)";
}
