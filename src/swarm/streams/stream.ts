import type { RunStream } from "../../protocol/runs.ts";
import type { UpcomingCall } from "../agents/caller.ts";
import { askWithAnswers } from "../agents/clarify.ts";
import { clarifyPrompt, describeTask, implementPrompt } from "../agents/prompts.ts";
import type { SwarmTask } from "../agents/task-list.ts";
import type { Progress, RunContext } from "../context/context.ts";
import { CLARIFICATION_KEYWORD, type Qa, type Review } from "../pipeline/schema.ts";
import { createLoops, type Loops, type Reviewer } from "../review/loop.ts";
import { NotApproved, RunFailed } from "../steps/journal.ts";
import { engineerSession, qaKey, streamKeys } from "../steps/keys.ts";
import type { Reply } from "../steps/reply.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { reviewedStream, streamReviewers } from "./reviews.ts";
import { createStreamTree, type TreeState } from "./stream-tree.ts";

/** The pipeline file's rules for streams. */
export interface StreamRules {
  /** The phase's id. */
  id: string;
  agent: string;
  /** Streams may work in parallel. */
  parallel: boolean;
  reviews: readonly Review[];
  qa?: Qa | undefined;
  clarificationAgent?: string | undefined;
  clarificationKeyword?: string | undefined;
}

/** One task's way through the phase: an engineer in one lasting session, in one tree. */
export interface Stream {
  readonly record: RunStream;
  readonly task: SwarmTask;
  readonly keys: ReturnType<typeof streamKeys>;
  readonly loops: Loops;
  /** `report` is the engineer's latest reply. */
  state(): TreeState & { report: string };
  /** Asks the engineer; what it left in the tree is not yet committed. */
  engineer(key: string, prompt: string): Promise<Reply>;
  /** Commits and checks what is in the tree now. */
  commitAndCheck(message: string): Promise<void>;
}

export interface StreamDeps {
  context: RunContext;
  rules: StreamRules;
  progress: Progress;
  record: RunStream;
  task: SwarmTask;
  workspace: Workspace;
  /** The tree the stream began with. */
  baseTree: string;
  /** The agents asked after streams like this one have ended. */
  following?: readonly UpcomingCall[];
}

export function createStream(deps: StreamDeps): Stream {
  const { context, rules, progress, record, task, workspace, baseTree, following = [] } = deps;
  const { number } = record;
  const keys = streamKeys(rules.id, number);
  const tree = createStreamTree({ context, keys, number, workspace, baseTree });
  const reviewers = streamReviewers(keys.prefix, rules);
  const testerKey = rules.qa && qaKey(keys.prefix, rules.qa.agent);
  let report = "";

  async function engineer(key: string, prompt: string): Promise<Reply> {
    const next = [...firstRounds, ...following];
    const reply = await askEngineer({ context, rules, progress, number, cwd: tree.cwd }, key, prompt, next);
    if (reply.ok) report = reply.text;
    return reply;
  }

  const { work, firstRounds } = reviewedStream({
    context,
    phase: rules.id,
    progress,
    record,
    reviewers,
    isTester: ({ key }) => key === testerKey,
    told: describeTask(task),
    tree,
    engineer: rules.agent,
    async fix(key, reviewer: Reviewer, prompt) {
      const reply = await engineer(key, prompt);
      if (reply.ok) await tree.commitAndCheck(`Address the findings of ${reviewer.agent}\n`);
      return reply;
    },
  });
  const loops = createLoops({ reviewers, phase: rules.id, stream: number, record: context.recordLoop, work });
  return { record, task, keys, loops, state: () => ({ ...tree.state(), report }), engineer, commitAndCheck: tree.commitAndCheck };
}

interface EngineerAt extends Pick<StreamDeps, "context" | "rules" | "progress"> {
  number: number;
  cwd: string;
}

/** Asks a stream's engineer in its lasting session, and gets its questions answered. */
function askEngineer(
  { context: { caller, runId, about, pipeline }, rules, progress, number, cwd }: EngineerAt,
  key: string,
  prompt: string,
  next: readonly UpcomingCall[],
): Promise<Reply> {
  const base = { phase: rules.id, stream: number, model: pipeline.primaryModel, cwd };
  const { agent, clarificationAgent, clarificationKeyword = CLARIFICATION_KEYWORD } = rules;
  const session = engineerSession(runId, number);
  return askWithAnswers(
    caller,
    { ...base, key, agent, duty: "build", prompt, session, next },
    {
      keyword: clarificationKeyword,
      answer: clarificationAgent
        ? (answerKey, question) =>
            caller.ask({
              ...base,
              key: answerKey,
              agent: clarificationAgent,
              duty: "plan",
              prompt: clarifyPrompt(about, progress.spec, agent, question),
            })
        : undefined,
    },
  );
}

/** Implements a task and takes it through its reviews. Throws if the stream cannot go on. */
export async function work(stream: Stream, { context, progress }: Pick<StreamDeps, "context" | "progress">): Promise<void> {
  const { task } = stream;
  const first = await stream.engineer(stream.keys.draft, implementPrompt(context.about, progress.spec, task, progress.design));
  if (!first.ok) throw new RunFailed(`the engineer gave no work: ${first.reason}`);
  await stream.commitAndCheck(`${title(task)}\n`);
  await review(stream);
}

/** Takes the present tree through every reviewer that has not approved exactly this tree. */
export async function review(stream: Stream): Promise<void> {
  if (await stream.loops.run()) return;
  const stopped = stream.loops.loops().find((loop) => loop.outcome !== "approved" && loop.reviews > 0);
  throw new NotApproved(`${stopped?.agent} did not approve (${stopped?.outcome})`);
}

export function title(task: SwarmTask): string {
  return task.text.split("\n")[0]!.slice(0, 72);
}
