import type { DesignPhase } from "../pipeline/schema.ts";
import type { Progress, RunContext } from "../run/context.ts";
import { designPrompt } from "./prompts.ts";
import { writeText } from "./text.ts";

/** Designs the frontend tasks and has the design reviewed. */
export async function runDesign(context: RunContext, phase: DesignPhase, progress: Progress): Promise<Progress> {
  const design = await writeText(context, {
    phase: "design",
    what: "design",
    agent: phase.agent,
    prompt: designPrompt(context.about, progress.spec, progress.tasks),
    spec: progress.spec,
    reviews: phase.reviews,
    clarificationAgent: phase.clarificationAgent,
  });
  context.documents.write(`${phase.agent}.md`, `Design by ${phase.agent}`, design, context.served("design"));
  return { ...progress, design };
}
