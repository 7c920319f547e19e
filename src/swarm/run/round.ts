import { z } from "zod";
import { setRef } from "../../git/refs.ts";
import { weakenedBetween } from "../../git/weakened-tests.ts";
import { current } from "../../git/worktrees.ts";
import { conflict, messageOf, UserError } from "../../lib/errors.ts";
import type { Run } from "../../protocol/runs.ts";
import { describeEvidence, passed } from "../checks/checks.ts";
import { whyUntested } from "../checks/untested.ts";
import type { RunContext } from "../context/context.ts";
import type { Round } from "../pipeline/inputs.ts";
import { currentEvidence } from "../steps/current-evidence.ts";
import { RunFailed } from "../steps/journal.ts";
import { engineerSession, IMPLEMENT, reopenedKeys } from "../steps/keys.ts";
import { openMergedTree } from "../streams/merged-tree.ts";
import { baseState, companionCommits, resetCompanions, treesIn } from "../workspace/companions.ts";
import type { BranchWorkplace } from "../workspace/workspace.ts";
import { beginChecks, type Ending } from "./execute.ts";

/** The result of a round. */
export const RoundEnd = z.object({
  /** What the engineer said. */
  reply: z.string(),
  /** The tip of the branch; null if nothing was changed. */
  commit: z.string().nullable(),
  /** The tips of the other projects' branches, in order. */
  others: z.array(z.string()).default([]),
  /** Why the round was refused; the branch is then as it was before. */
  refused: z.string().nullable(),
});
export type RoundEnd = z.infer<typeof RoundEnd>;

const NOTHING: RoundEnd = { reply: "", commit: null, others: [], refused: null };

const State = z.object({ commit: z.string(), tree: z.string(), companions: z.array(z.string()).default([]) });
type State = z.infer<typeof State>;

/** How often the engineer is asked in one round: once, and again while the checks fail or tests are weakened. */
const TRIES = 3;

/**
 * Continues an ended run on the same branch: its stream's engineer goes on in the same session, and the project's checks decide.
 * A change that fails them, or weakens tests where that is not allowed, is undone.
 */
export async function workRound(context: RunContext, round: Round, view: () => Run): Promise<Ending> {
  const { workplace, journal } = context;
  if (workplace.kind === "in place") throw conflict("the run worked in place and has no branch to go on with.");
  const keys = reopenedKeys(round.number);
  const at = { kind: "git" as const, phase: "run", decides: true };
  const began = await journal.step(State, { ...at, key: keys.begin }, {}, async () => ({
    value: await stateNow(workplace),
  }));
  const end = await journal.step(RoundEnd, { ...at, key: keys.end }, {}, async () => {
    const value = await attempt(context, { round, workplace, began, view }).catch((error: unknown): RoundEnd => {
      if (!(error instanceof RunFailed) && !(error instanceof UserError)) throw error;
      return { ...NOTHING, refused: messageOf(error) };
    });
    if (value.refused !== null) await undoRound(context, workplace, began, round.number);
    return { value, verdict: value.refused === null ? "done" : "refused" };
  });
  const isChanged = end.refused === null && end.commit !== null;
  if (!isChanged) return { status: "done", ...round.before, tree: began.tree };
  const { tree } = await stateNow(workplace);
  const untested = round.before.outcome === "approved" ? whyUntested(currentEvidence(view(), tree)) : undefined;
  const judged = untested === undefined ? round.before : { outcome: "untested" as const, reason: untested };
  return { status: "done", ...judged, tree };
}

async function stateNow(workplace: BranchWorkplace): Promise<State> {
  const { commit, tree } = await current(workplace.workspace.tree);
  const companions = (await companionCommits(workplace)).map((each) => each.commit);
  return { commit, tree: await workplace.stateWith(tree), companions };
}

interface Attempt {
  round: Round;
  workplace: BranchWorkplace;
  began: State;
  view: () => Run;
}

async function attempt(context: RunContext, { round, workplace, began, view }: Attempt): Promise<RoundEnd> {
  const { pipeline, caller, runId } = context;
  const keys = reopenedKeys(round.number);
  const phase = pipeline.pipeline.find((each) => each.phase === IMPLEMENT);
  const { agent } = z.object({ agent: z.string() }).safeParse(phase).data ?? {};
  if (phase === undefined || agent === undefined) throw new RunFailed("its pipeline has no phase that implements");
  await beginChecks(context, await baseState(workplace), view);
  const stream = view().streams.find(({ merged }) => merged)?.number ?? 1;
  const { cwd } = workplace.workspace;
  const result = openMergedTree(context, phase.id, began.tree);
  const elsewhere = workplace.companions.map((each) => `Those of ${each.projectPath} are in ${each.workplace.workspace.cwd}.`);
  let prompt = `${round.prompt}\n\n${[`The files are in ${cwd} now.`, ...elsewhere].join("\n")}`;
  let refused = "";
  for (let tried = 1; tried <= TRIES; tried += 1) {
    const reply = await caller.ask({
      ...{ key: keys.work(tried), phase: phase.id, stream, agent, duty: "build", cwd, prompt },
      ...{ model: pipeline.primaryModel, session: engineerSession(runId, stream) },
    });
    if (!reply.ok) throw new RunFailed(`the engineer gave no work: ${reply.reason}`);
    await result.commit(keys.commit(tried), `${round.title}\n`);
    if (result.tree() === began.tree) return { ...NOTHING, reply: reply.text };
    const weakened = round.keepsTests ? await weakenedSince(workplace, began.tree, result.tree()) : [];
    const isGreen = passed(result.evidence());
    if (isGreen && weakened.length === 0) {
      const { commit } = await current(workplace.workspace.tree);
      const others = (await companionCommits(workplace)).map((each) => each.commit);
      return { reply: reply.text, commit, others, refused: null };
    }
    refused = [
      ...(weakened.length > 0 ? [`it weakens tests or CI: ${weakened.join("; ")}`] : []),
      ...(isGreen ? [] : ["the project's own checks fail on it"]),
    ].join("; ");
    prompt = againPrompt(weakened, isGreen ? "" : describeEvidence(result.evidence()));
  }
  return { ...NOTHING, refused };
}

async function weakenedSince(workplace: BranchWorkplace, from: string, to: string): Promise<string[]> {
  const [before, after] = await Promise.all([treesIn(workplace, from), treesIn(workplace, to)]);
  const places = [workplace, ...workplace.companions.map((each) => each.workplace)];
  const found: string[] = [];
  for (const [index, { workspace }] of places.entries()) {
    const [a, b] = [before, after].map(({ own, others }) => (index === 0 ? own : others[index - 1]!));
    const weakened = await weakenedBetween(workspace.tree.git, workspace.tree.path, a!, b!);
    found.push(...weakened.map(({ path, what }) => `${path}: ${what}`));
  }
  return found;
}

function againPrompt(weakened: readonly string[], evidence: string): string {
  return [
    ...(weakened.length > 0
      ? [
          `Your change takes something away from tests or CI, which is refused:\n${weakened.map((each) => `- ${each}`).join("\n")}\nPut all of that back exactly as it was and mend the code instead. If the tests are wrong, leave them and say why.`,
        ]
      : []),
    ...(evidence === "" ? [] : [`The project's checks on what you changed:\n${evidence}\n\nMend what fails.`]),
    "Then answer as you were asked to before.",
  ].join("\n\n");
}

/** Resets the branch to where the round began; a ref keeps the refused commits. */
async function undoRound(
  { runId }: RunContext,
  { repo, workspace, companions }: BranchWorkplace,
  began: State,
  number: number,
): Promise<void> {
  const { tree } = workspace;
  const { commit } = await current(tree);
  if (commit !== began.commit) await setRef(repo, `refs/swarm/${runId}/refused-${number}`, commit);
  await tree.git.must(tree.path, ["reset", "--hard", "-q", began.commit]);
  await resetCompanions({ companions }, began.companions, { runId, label: `refused-${number}` });
  await workspace.tidy?.(`refused-${number}`);
}
