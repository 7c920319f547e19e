import { z } from "zod";
import { applyBranch, openRepo } from "../../git/repository.ts";
import type { RunContext } from "./context.ts";
import type { Ending } from "./execute.ts";
import { runKeys } from "./keys.ts";

/** The branch that was checked out when a run began: the only one its result may be merged into. */
export function branchToApplyTo({ journal, workplace }: Pick<RunContext, "journal" | "workplace">): Promise<string | null> {
  return journal.step(z.string().nullable(), { key: runKeys.checkout, kind: "git", phase: "run" }, {}, async () => ({
    value: workplace.kind === "branch" ? workplace.repo.branch : null,
  }));
}

/** Merges an approved result into the checkout. False if that cannot be done; a note then says why. */
export async function applyTo(target: string | null, context: RunContext, { status, outcome }: Ending): Promise<boolean> {
  const { workplace } = context;
  if (status !== "done") return false;
  const refuse = (why: string) => {
    context.note(`the result was not merged into the checkout: ${why}`);
    return false;
  };
  if (workplace.kind === "in place") return refuse("the work was done in place, so it is there already");
  if (outcome !== "approved") return refuse("not everything is approved");
  const now = (await openRepo(workplace.repo.git, workplace.repo.root))?.branch ?? null;
  if (now !== target)
    return refuse(
      `it was on ${nameOf(target)} when the run began and is on ${nameOf(now)} now. Switch back, and merge it yourself`,
    );
  const { repo, branch } = workplace;
  return context.journal.step(z.boolean(), { key: runKeys.apply, kind: "git", phase: "run" }, { branch }, async () => {
    const why = await applyBranch(repo, branch);
    if (why !== undefined) refuse(why);
    return { value: why === undefined };
  });
}

function nameOf(branch: string | null): string {
  return branch ?? "no branch (detached head)";
}
