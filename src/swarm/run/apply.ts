import { z } from "zod";
import { openRepo } from "../../git/repository.ts";
import type { RunContext } from "./context.ts";
import { apply, type Ending } from "./execute.ts";

/** The branch that is checked out when a run begins: the only one its result may be merged into. */
export function branchToApplyTo({ journal, workplace }: Pick<RunContext, "journal" | "workplace">): Promise<string | null> {
  return journal.step(z.string().nullable(), { key: "run/checkout", kind: "git", phase: "run" }, {}, async () => ({
    value: workplace.kind === "branch" ? workplace.repo.branch : null,
  }));
}

/** Merges a result into the checkout, as was asked for; false, and a note that says why, when that cannot be. */
export async function applyTo(target: string | null, context: RunContext, { status, outcome }: Ending): Promise<boolean> {
  const { workplace } = context;
  if (status !== "done") return false;
  const refuse = (why: string) => {
    context.note(`the result was not merged into the checkout: ${why}`);
    return false;
  };
  if (workplace.kind === "in place") return refuse("the work was done in place, so it is there already");
  if (outcome !== "approved") return refuse("not everything is approved");
  const now = (await openRepo(workplace.repo.root))?.branch ?? null;
  if (now !== target)
    return refuse(
      `it was on ${nameOf(target)} when the run began and is on ${nameOf(now)} now. Switch back, and merge it yourself`,
    );
  return apply(context);
}

function nameOf(branch: string | null): string {
  return branch ?? "no branch (detached head)";
}
