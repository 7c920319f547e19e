import { z } from "zod";
import type { CheckEvidence } from "../../protocol/runs.ts";
import type { CrossModelPhase } from "../pipeline/schema.ts";
import { createLoops, type Reviewer } from "../review/loop.ts";
import { readVerdict } from "../review/verdict.ts";
import { sessionOf } from "../run/caller.ts";
import { type Progress, type RunContext, reviewersOf } from "../run/context.ts";
import { hashOf, NotApproved } from "../run/journal.ts";
import { passed } from "../streams/checks.ts";
import { SavedState } from "../streams/stream.ts";
import { fixPrompt, reviewPrompt } from "./prompts.ts";

/** Has another model review everything together, and the fixing agent meet its findings. */
export async function runCrossModel(context: RunContext, phase: CrossModelPhase, progress: Progress): Promise<Progress> {
  const { caller, journal, checks, about, pipeline, workplace } = context;
  const { workspace } = workplace;
  const name = "cross-model-review";
  const base = { phase: name, cwd: workspace.cwd };
  const reviewer = {
    key: `${name}/review:${phase.agent}`,
    agent: phase.agent,
    maxIterations: phase.maxIterations,
    approvalKeyword: phase.approvalKeyword,
    onExhausted: phase.onExhausted,
  };
  // A fix voids what was approved before it: who approved the parts looks at the whole once more.
  const implement = pipeline.pipeline.find((each) => each.phase === "implement");
  const qa: Reviewer[] = implement?.qa ? [{ ...implement.qa, key: `${name}/again/qa:${implement.qa.agent}` }] : [];
  const again = [...reviewersOf(`${name}/again`, implement?.reviews ?? []), ...qa].map(
    (each): Reviewer => ({
      ...each,
      clarificationAgent: undefined,
      clarificationKeyword: undefined,
      approvedBefore: progress.tree,
    }),
  );
  const isQa = ({ key }: Reviewer) => qa[0]?.key === key;
  const replies: string[] = [];
  let tree = progress.tree;
  let evidence: CheckEvidence[] = [];

  const check = async () => {
    evidence = await checks.run({
      prefix: "run",
      phase: name,
      folder: workspace.cwd,
      tree,
      after: async () => workspace.tidy?.(`cross-${tree.slice(0, 12)}`),
    });
  };
  /** What a tester leaves is put aside, or, where that cannot be, seen. */
  const tidyAfter = async (key: string) => {
    const head = { key: `${key}/after`, kind: "git" as const, phase: name };
    if (workspace.tidy)
      await journal.step(z.string().nullable(), head, { tree }, async () => ({
        value: (await workspace.tidy?.(hashOf(key).slice(0, 12))) ?? null,
      }));
    else tree = (await journal.step(SavedState, head, { tree }, async () => ({ value: await workspace.save("") }))).tree;
  };
  await check();

  const loops = createLoops({
    reviewers: [reviewer, ...again],
    phase: name,
    stream: null,
    record: context.recordLoop,
    work: {
      state: () => tree,
      async review({ reviewer: { key, agent, approvalKeyword }, reviewer: asked, number, findings }) {
        const reply = await caller.ask({
          ...base,
          key: `${key}/${number}`,
          agent,
          duty: isQa(asked) ? "qa" : "review",
          model: asked === reviewer ? pipeline.reviewModel : pipeline.primaryModel,
          prompt: reviewPrompt({
            about,
            spec: progress.spec,
            artefact: { diff: await workspace.diff(progress.baseTree, tree), tree },
            evidence,
            findings,
            approvalKeyword,
          }),
          verdict: (text) => readVerdict(text, approvalKeyword),
        });
        if (isQa(asked)) await tidyAfter(`${key}/${number}`);
        replies.push(`## ${agent}, round ${number}\n\n${reply.ok ? reply.text : `No verdict: ${reply.reason}`}`);
        return reply;
      },
      veto: (asked) =>
        isQa(asked) && !passed(evidence) ? "The runtime's own record of this tree does not bear this out." : undefined,
      async revise({ reviewer: { key, agent }, number, findings }) {
        const reply = await caller.ask({
          ...base,
          key: `${key}/${number}/fix:${phase.fixAgent}`,
          agent: phase.fixAgent,
          duty: "build",
          model: pipeline.primaryModel,
          session: sessionOf(journal.runId, "cross-model-fix"),
          prompt: fixPrompt(progress.spec, agent, findings.join("\n\n"), evidence),
        });
        if (!reply.ok) return reply;
        const head = { key: `${key}/${number}/commit`, kind: "git" as const, phase: name };
        const saved = await journal.step(SavedState, head, { from: tree }, async () => ({
          value: await workspace.save(`Meet the findings of ${agent}\n`),
        }));
        tree = saved.tree;
        await check();
        return reply;
      },
    },
  });
  const wentOn = await loops.run();
  loops.close();
  context.documents.write("cross-model-review.md", `Review by ${phase.agent}`, replies.join("\n\n"), context.served(name));
  if (!wentOn) throw new NotApproved(`${name}: ${phase.agent} did not approve`);
  return { ...progress, tree };
}
