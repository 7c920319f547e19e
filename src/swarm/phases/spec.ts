import { whySkipped } from "../pipeline/conditions.ts";
import { comparedModels } from "../pipeline/named-models.ts";
import type { Phase, SpecPhase } from "../pipeline/schema.ts";
import type { Progress, RunContext } from "../run/context.ts";
import { openers } from "../run/prefetch.ts";
import { specPrompt } from "./prompts.ts";
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
    next: context.pipeline.pipeline
      .filter((later) => later !== phase && !isSameModelReview(context, later))
      .flatMap((later) => openers(context.pipeline, later, context.workplace.workspace.cwd)),
  });
  context.documents.write(`${phase.agent}.md`, `Specification by ${phase.agent}`, spec, context.served("spec"));
  return { ...progress, spec };
}

/** Whether a phase will be left out, since no other model would review. */
function isSameModelReview(context: RunContext, phase: Phase): boolean {
  if (phase.phase !== "cross-model-review") return false;
  const models = comparedModels(phase, context, context.serving);
  return whySkipped(phase.condition, { models, tasks: [] }) !== undefined;
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
