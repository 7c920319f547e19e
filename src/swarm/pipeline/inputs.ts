import { createHash } from "node:crypto";
import { z } from "zod";
import { RunModel } from "../../protocol/runs.ts";
import { hashOf } from "../run/journal.ts";
import type { LoadedPipeline } from "./file.ts";
import type { RunSettings } from "./settings.ts";

/** What a run was started with, so that a resume can tell whether it is still the same run. */
export const Inputs = z.object({
  pipelineFile: z.string().nullable(),
  pipelineHash: z.string(),
  agents: z.record(z.string(), z.string()),
  issueHash: z.string(),
  primaryModel: z.string(),
  reviewModel: z.string(),
  apply: z.boolean(),
  /** Other models may serve for those that a person named. */
  standIns: z.boolean().default(false),
  /** What serves for each name, as it was found when the run was last taken up. */
  models: z.array(RunModel).default([]),
  /** Nobody stands by: a daemon that was killed takes it up again. */
  unattended: z.boolean().default(false),
  decisions: z.array(z.string()),
  settings: z.object({
    verbose: z.boolean(),
    agentsDir: z.string(),
    docDir: z.string(),
    sessionTimeoutMs: z.number(),
    maxRetries: z.number(),
    summaryFileName: z.string(),
    primaryModel: z.string().optional(),
    reviewModel: z.string().optional(),
  }),
});
export type Inputs = z.infer<typeof Inputs>;

/** The settings as they are written down. */
export function kept({ issue: _, primaryModel, reviewModel, ...rest }: RunSettings): Inputs["settings"] {
  return { ...rest, ...(primaryModel !== undefined && { primaryModel }), ...(reviewModel !== undefined && { reviewModel }) };
}

export type Fingerprint = Pick<Inputs, "pipelineHash" | "agents" | "issueHash" | "primaryModel" | "reviewModel">;

export function fingerprint({ pipeline, agents }: LoadedPipeline, issue: string): Fingerprint {
  const { primaryModel, reviewModel, ...rest } = pipeline;
  return {
    pipelineHash: hashOf(rest),
    agents: Object.fromEntries(
      [...agents].map(([name, agent]) => [name, hashOf([agent.instructions, agent.tools, agent.model])]),
    ),
    issueHash: createHash("sha256").update(issue).digest("hex"),
    primaryModel,
    reviewModel,
  };
}

/** Why a run cannot go on as it began; nothing if it can. */
export function whatChanged(then: Inputs, now: Fingerprint, settings: RunSettings): string[] {
  const agents = [...new Set([...Object.keys(then.agents), ...Object.keys(now.agents)])].filter(
    (name) => then.agents[name] !== now.agents[name],
  );
  return [
    ...(then.issueHash !== now.issueHash ? ["the request has changed"] : []),
    ...(then.pipelineHash !== now.pipelineHash ? ["the pipeline file has changed"] : []),
    ...(agents.length > 0 ? [`the instructions of ${agents.join(", ")} have changed`] : []),
    ...(then.primaryModel !== now.primaryModel ? [`the primary model was ${then.primaryModel} and is ${now.primaryModel}`] : []),
    ...(then.reviewModel !== now.reviewModel ? [`the review model was ${then.reviewModel} and is ${now.reviewModel}`] : []),
    ...changedPlace("the documents", then.settings.docDir, settings.docDir),
    ...changedPlace("the summary", then.settings.summaryFileName, settings.summaryFileName),
  ];
}

function changedPlace(what: string, then: string, now: string): string[] {
  return then === now ? [] : [`${what} went to ${then} and would go to ${now}`];
}
