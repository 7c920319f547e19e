import { MAX_CLARIFICATIONS } from "../pipeline/limits.ts";
import { saysKeyword } from "../review/verdict.ts";
import type { Call, Caller, Reply } from "../run/caller.ts";
import { answerPrompt } from "./prompts.ts";

/** Asks; while the reply is a question, has it answered and asks again, and in the end takes what there is. */
export async function askWithAnswers(
  caller: Caller,
  call: Call,
  asking: { keyword: string; answer: ((round: number, question: string) => Promise<Reply>) | undefined },
): Promise<Reply> {
  let reply = await caller.ask(call);
  if (!asking.answer) return reply;
  for (let round = 1; round <= MAX_CLARIFICATIONS && reply.ok && saysKeyword(reply.text, asking.keyword); round += 1) {
    const answer = await asking.answer(round, reply.text);
    const told = answer.ok ? answer.text : "Nobody could answer. Use your judgement, and say what you assumed.";
    reply = await caller.ask({
      ...call,
      key: `${call.key}/answered/${round}`,
      prompt: answerPrompt(call.prompt, reply.text, told),
    });
  }
  return reply;
}
