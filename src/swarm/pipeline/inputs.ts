import { createHash } from "node:crypto";
import { z } from "zod";
import { RunModel, RunOutcome } from "../../protocol/runs.ts";
import { readJson } from "../../store/read-json.ts";
import { hashOf } from "../steps/journal.ts";
import type { LoadedPipeline } from "./file.ts";
import type { RunSettings } from "./settings.ts";

/** One follow-up on a run that had ended. */
export const Round = z.object({
  /** Counted from 1. */
  number: z.number().int(),
  /** The message of its commits. */
  title: z.string(),
  prompt: z.string(),
  /** Whether to refuse a change that removes something from tests or CI. */
  keepsTests: z.boolean(),
  /** How the run had ended before. */
  before: z.object({ outcome: RunOutcome, reason: z.string().nullable() }),
});
export type Round = z.infer<typeof Round>;

/** Another repository that a run changes. */
export const Companion = z.object({
  projectPath: z.string(),
  /** The commit the run begins from there. */
  base: z.string(),
  /** The checks that its own pipeline file names. */
  checks: z.array(z.string()).optional(),
  /** The tree of the result, once there is one. */
  tree: z.string().optional(),
});
export type Companion = z.infer<typeof Companion>;

/** What a run was started with, so that a resume can tell what has changed since. */
export const Inputs = z.object({
  pipelineFile: z.string().nullable(),
  pipelineHash: z.string(),
  agents: z.record(z.string(), z.string()),
  issueHash: z.string(),
  primaryModel: z.string(),
  reviewModel: z.string(),
  apply: z.boolean(),
  /** Ask no model unless the project's checks can run. */
  requireChecks: z.boolean().default(false),
  /** Substitutes may serve for models that a person named. */
  standIns: z.boolean().default(false),
  /** Which model served each name when the run was last begun or resumed. */
  models: z.array(RunModel).default([]),
  /** Nobody watches it: a daemon resumes it by itself. */
  unattended: z.boolean().default(false),
  /** The request came from a plan. */
  plan: z.boolean().default(false),
  /** It may be continued after it has ended, so its engineers' sessions are kept. */
  reopenable: z.boolean().default(false),
  /** The commit that it begins from, if not the checkout's. */
  base: z.string().optional(),
  /** The branch of its work, if fixed before it began. */
  branch: z.string().optional(),
  /** The other repositories that it changes. */
  with: z.array(Companion).default([]),
  /** The tree of its own repository in the result, if it changes others too. */
  ownTree: z.string().optional(),
  /** The current or last follow-up. */
  round: Round.optional(),
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

/** Whether nobody watches a run; undefined if its inputs cannot be read that far. */
export function isUnattended(inputs: string): boolean | undefined {
  return readJson(Inputs.pick({ unattended: true }), inputs)?.unattended;
}

/** The settings as they are stored. */
export function storedSettings({
  issue: _,
  agentsDirSet: __,
  primaryModel,
  reviewModel,
  ...rest
}: RunSettings): Inputs["settings"] {
  return { ...rest, ...(primaryModel !== undefined && { primaryModel }), ...(reviewModel !== undefined && { reviewModel }) };
}

export type Fingerprint = Pick<Inputs, "pipelineHash" | "agents" | "issueHash" | "primaryModel" | "reviewModel">;

export function fingerprint({ pipeline, agents }: LoadedPipeline, issue: string): Fingerprint {
  const { primaryModel, reviewModel, pipeline: phases, ...rest } = pipeline;
  return {
    pipelineHash: hashOf({ ...rest, pipeline: phases.map(({ id: _, ...phase }) => phase) }),
    agents: Object.fromEntries(
      [...agents].map(([name, agent]) => [name, hashOf([agent.instructions, agent.tools, agent.model])]),
    ),
    issueHash: createHash("sha256").update(issue).digest("hex"),
    primaryModel,
    reviewModel,
  };
}

/** What keeps a run from going on as it began; empty if nothing does. */
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
