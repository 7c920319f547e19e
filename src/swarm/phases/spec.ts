import type { Expected } from "../caller.ts";
import type { Progress, RunContext } from "../context.ts";
import { specPrompt } from "../prompts.ts";
import type { SpecPhase } from "../schema.ts";
import { writeText } from "./text.ts";

/** Writes the specification and has it reviewed. */
export async function runSpec(context: RunContext, phase: SpecPhase, progress: Progress): Promise<Progress> {
  const spec = await writeText(context, {
    phase: "spec",
    what: "specification",
    agent: phase.agent,
    prompt: specPrompt(context.about),
    spec: "",
    reviews: phase.reviews,
    next: laterCalls(context),
  });
  context.documents.write(`${phase.agent}.md`, `Specification by ${phase.agent}`, spec);
  return { ...progress, spec };
}

/** The first calls of the phases whose agents and places are known from the beginning. */
function laterCalls({ pipeline, ground }: RunContext): Expected[] {
  const { cwd } = ground.workspace;
  return pipeline.pipeline.flatMap((phase): Expected[] => {
    const { agent } = phase;
    if (phase.phase === "decompose")
      return [{ key: `decompose/tasks:${agent}/1`, agent, duty: "plan", model: pipeline.primaryModel, cwd }];
    if (phase.phase === "cross-model-review" && pipeline.reviewModel !== pipeline.primaryModel)
      return [{ key: `cross-model-review/review:${agent}/1`, agent, duty: "review", model: pipeline.reviewModel, cwd }];
    return [];
  });
}

/** The choices a specification lists under a heading of that name. */
export function decisionsOf(spec: string): string[] {
  const [, list = ""] = /^(?:#+\s*|\*\*|- \*\*)\s*decisions\b[^\n]*\n([\s\S]*?)(?=^\s*#|^\*\*|$(?![\s\S]))/im.exec(spec) ?? [];
  return list
    .split("\n")
    .flatMap((line) => /^\s*(?:[-*]|\d+[.)])\s+(.*\S)/.exec(line)?.[1] ?? [])
    .slice(0, 20)
    .map((line) => line.slice(0, 500));
}
