import type { Evidence } from "../../protocol/runs.ts";
import { sessionOf } from "../caller.ts";
import type { Progress, RunContext } from "../context.ts";
import { NotApproved } from "../journal.ts";
import type { CrossModelPhase } from "../pipeline/schema.ts";
import { fixPrompt, reviewPrompt } from "../prompts.ts";
import { createLoops } from "../review-loop.ts";
import { SavedState } from "../stream.ts";
import { readVerdict } from "../verdict.ts";

/** Has another model review everything together, and the fixing agent meet its findings. */
export async function runCrossModel(context: RunContext, phase: CrossModelPhase, progress: Progress): Promise<Progress> {
  const { caller, journal, checks, about, pipeline, ground } = context;
  const { workspace } = ground;
  const name = "cross-model-review";
  const base = { phase: name, cwd: workspace.cwd };
  const gate = {
    key: `${name}/review:${phase.agent}`,
    agent: phase.agent,
    maxIterations: phase.maxIterations,
    approvalKeyword: phase.approvalKeyword,
    onExhausted: phase.onExhausted,
  };
  const replies: string[] = [];
  let tree = progress.tree;
  let evidence: Evidence[] = [];

  const check = async () => {
    evidence = await checks.run({
      prefix: "run",
      phase: name,
      folder: workspace.cwd,
      tree,
      after: async () => workspace.tidy?.(`cross-${tree.slice(0, 12)}`),
    });
  };
  await check();

  const loops = createLoops({
    gates: [gate],
    phase: name,
    stream: null,
    record: context.recordLoop,
    work: {
      state: () => tree,
      async review({ number, findings }) {
        const reply = await caller.ask({
          ...base,
          key: `${gate.key}/${number}`,
          agent: phase.agent,
          duty: "review",
          model: pipeline.reviewModel,
          prompt: reviewPrompt({
            about,
            spec: progress.spec,
            artefact: { diff: await workspace.diff(progress.baseTree, tree), tree },
            evidence,
            findings,
            approvalKeyword: phase.approvalKeyword,
          }),
          verdict: (text) => readVerdict(text, phase.approvalKeyword),
        });
        replies.push(`## Round ${number}\n\n${reply.ok ? reply.text : `No verdict: ${reply.reason}`}`);
        return reply;
      },
      async revise({ number, findings }) {
        const reply = await caller.ask({
          ...base,
          key: `${gate.key}/${number}/fix:${phase.fixAgent}`,
          agent: phase.fixAgent,
          duty: "build",
          model: pipeline.primaryModel,
          session: sessionOf(journal.runId, "cross-model-fix"),
          prompt: `${fixPrompt(progress.spec, phase.agent, findings.join("\n\n"), evidence)}`,
        });
        if (!reply.ok) return reply;
        const head = { key: `${gate.key}/${number}/commit`, kind: "git" as const, phase: name };
        const saved = await journal.step(SavedState, head, { from: tree }, async () => ({
          value: await workspace.save(`Meet the findings of ${phase.agent}\n`),
        }));
        tree = saved.tree;
        await check();
        return reply;
      },
    },
  });
  const wentOn = await loops.run();
  loops.close();
  context.documents.write("cross-model-review.md", `Review by ${phase.agent} on ${pipeline.reviewModel}`, replies.join("\n\n"));
  if (!wentOn) throw new NotApproved(`${name}: ${phase.agent} did not approve`);
  return { ...progress, tree };
}
