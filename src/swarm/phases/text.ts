import { CLARIFICATION_KEYWORD, type Review } from "../pipeline/schema.ts";
import { createLoops } from "../review/loop.ts";
import { readVerdict } from "../review/verdict.ts";
import type { Call, Expected, Reply } from "../run/caller.ts";
import { type RunContext, reviewersOf } from "../run/context.ts";
import { hashOf, NotApproved, RunFailed } from "../run/journal.ts";
import { draftKey } from "../run/prefetch.ts";
import { askWithAnswers } from "./clarify.ts";
import { clarifyPrompt, reviewPrompt, revisePrompt } from "./prompts.ts";

export interface TextWork {
  phase: string;
  /** What it is called in prompts: "specification", "design". */
  what: string;
  agent: string;
  prompt: string;
  /** What reviewers and clarifiers are told besides. */
  spec: string;
  reviews: readonly Review[];
  clarificationAgent?: string | undefined;
  /** Who is asked after this text, in later phases. */
  next?: readonly Expected[];
}

/** Writes a text and takes it through its reviews; the last revision. */
export async function writeText(context: RunContext, work: TextWork): Promise<string> {
  const { caller, about, pipeline, workplace } = context;
  const { phase, what, agent, spec } = work;
  const base = { phase, model: pipeline.primaryModel, cwd: workplace.workspace.cwd };
  const writer = (key: string, prompt: string, next: readonly Expected[]): Call => ({
    ...base,
    key,
    agent,
    duty: "plan",
    prompt,
    next,
  });
  const clarify = (key: string, who: string, asker: string, question: string) =>
    caller.ask({ ...base, key, agent: who, duty: "plan", prompt: clarifyPrompt(about, spec, asker, question) });

  const write = (key: string, prompt: string, next: readonly Expected[] = []): Promise<Reply> =>
    askWithAnswers(caller, writer(key, prompt, next), {
      keyword: CLARIFICATION_KEYWORD,
      answer: work.clarificationAgent
        ? (round, question) => clarify(`${key}/clarify/${round}`, work.clarificationAgent!, agent, question)
        : undefined,
    });

  const reviewers = reviewersOf(phase, work.reviews);
  const nextUp = reviewers.map((reviewer) => ({
    ...base,
    key: `${reviewer.key}/1`,
    agent: reviewer.agent,
    duty: "review" as const,
  }));
  let text = "";

  const loops = createLoops({
    reviewers,
    phase,
    stream: null,
    record: context.recordLoop,
    work: {
      state: () => hashOf(text),
      review: ({ reviewer, number, findings }) =>
        caller.ask({
          ...base,
          key: `${reviewer.key}/${number}`,
          agent: reviewer.agent,
          duty: "review",
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
        clarify(`${reviewer.key}/${number}/clarify`, reviewer.clarificationAgent!, reviewer.agent, question),
      async revise({ reviewer, number, findings, answer }) {
        const reply = await write(
          `${reviewer.key}/${number}/revise:${agent}`,
          revisePrompt(what, about, text, reviewer.agent, findings.join("\n\n"), answer),
        );
        if (reply.ok) text = reply.text;
        return reply;
      },
    },
  });
  const first = await write(draftKey(phase, agent), work.prompt, [...nextUp, ...(work.next ?? [])]);
  if (first.ok) text = first.text;
  const wentOn = first.ok && (await loops.run());
  loops.close();
  if (!first.ok) throw new RunFailed(`${phase}: ${agent} gave no ${what}: ${first.reason}`);
  if (!wentOn)
    throw new NotApproved(
      `${phase}: ${loops.loops().find((loop) => loop.outcome !== "approved")?.agent} did not approve the ${what}`,
    );
  return text;
}
