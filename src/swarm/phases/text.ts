import type { UpcomingCall } from "../agents/caller.ts";
import { askWithAnswers } from "../agents/clarify.ts";
import { clarifyPrompt, reviewPrompt, revisePrompt } from "../agents/prompts.ts";
import type { RunContext } from "../context/context.ts";
import { CLARIFICATION_KEYWORD, type Review } from "../pipeline/schema.ts";
import { createLoops, type Reviewed, type Reviewer } from "../review/loop.ts";
import { reviewersOf } from "../review/reviewers.ts";
import { readVerdict } from "../review/verdict.ts";
import { hashOf, NotApproved, RunFailed } from "../steps/journal.ts";
import { draftKey, roundKeys } from "../steps/keys.ts";
import type { Reply } from "../steps/reply.ts";

export interface TextWork {
  phase: string;
  /** What it is called in prompts: "specification", "design". */
  what: string;
  agent: string;
  prompt: string;
  /** The specification, for reviewers and for the agent that answers questions. */
  spec: string;
  reviews: readonly Review[];
  clarificationAgent?: string | undefined;
  /** The agents asked after this text, in later phases. */
  next?: readonly UpcomingCall[];
}

/** Writes a text and takes it through its reviews; returns the last revision. */
export async function writeText(context: RunContext, work: TextWork): Promise<string> {
  const { phase, what, agent } = work;
  const reviewers = reviewersOf(phase, work.reviews);
  const draft = createDraft(context, work);
  const loops = createLoops({ reviewers, phase, stream: null, record: context.recordLoop, work: draft });
  const first = await draft.write(draftKey(phase, agent), work.prompt, [...draft.firstRounds(reviewers), ...(work.next ?? [])]);
  const wentOn = first.ok && (await loops.run());
  loops.close();
  if (!first.ok) throw new RunFailed(`${phase}: ${agent} gave no ${what}: ${first.reason}`);
  if (!wentOn)
    throw new NotApproved(
      `${phase}: ${loops.loops().find((loop) => loop.outcome !== "approved")?.agent} did not approve the ${what}`,
    );
  return draft.text();
}

/** A text that its author writes and revises, and reviewers judge. */
function createDraft({ caller, about, pipeline, workplace }: RunContext, work: TextWork) {
  const { phase, what, agent, spec, clarificationAgent } = work;
  const base = { phase, model: pipeline.primaryModel, cwd: workplace.workspace.cwd };
  let text = "";

  const clarify = (key: string, who: string, asker: string, question: string) =>
    caller.ask({ ...base, key, agent: who, duty: "plan", prompt: clarifyPrompt(about, spec, asker, question) });
  const asked = (reviewer: Reviewer, round: number): UpcomingCall => ({
    ...base,
    key: roundKeys(reviewer.key, round).review,
    agent: reviewer.agent,
    duty: "review",
  });

  async function write(key: string, prompt: string, next: readonly UpcomingCall[] = []): Promise<Reply> {
    const call = { ...base, key, agent, duty: "plan" as const, prompt, next };
    const reply = await askWithAnswers(caller, call, {
      keyword: CLARIFICATION_KEYWORD,
      answer: clarificationAgent ? (answerKey, question) => clarify(answerKey, clarificationAgent, agent, question) : undefined,
    });
    if (reply.ok) text = reply.text;
    return reply;
  }

  const reviewed: Reviewed = {
    state: () => hashOf(text),
    review: ({ reviewer, number, findings }) =>
      caller.ask({
        ...base,
        ...asked(reviewer, number),
        prompt: reviewPrompt({
          about,
          spec,
          artefact: { what, text },
          findings,
          approvalKeyword: reviewer.approvalKeyword,
          clarificationKeyword: reviewer.clarificationKeyword,
        }),
        verdict: (reply) => readVerdict(reply, reviewer.approvalKeyword, reviewer.clarificationKeyword),
      }),
    clarify: ({ reviewer, number, question }) =>
      clarify(roundKeys(reviewer.key, number).clarify, reviewer.clarificationAgent!, reviewer.agent, question),
    revise: ({ reviewer, number, findings, answer }) =>
      write(
        roundKeys(reviewer.key, number).revise(agent),
        revisePrompt(what, about, text, reviewer.agent, findings.join("\n\n"), answer),
      ),
  };
  return {
    ...reviewed,
    text: () => text,
    write,
    /** The first question to each reviewer, so that their sessions can be prepared in advance. */
    firstRounds: (reviewers: readonly Reviewer[]) => reviewers.map((reviewer) => asked(reviewer, 1)),
  };
}
