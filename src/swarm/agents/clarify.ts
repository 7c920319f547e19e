import { MAX_CLARIFICATIONS } from "../pipeline/limits.ts";
import { saysKeyword } from "../review/verdict.ts";
import { questionKeys } from "../steps/keys.ts";
import type { Reply } from "../steps/reply.ts";
import type { Call, Caller } from "./caller.ts";
import { answerPrompt } from "./prompts.ts";

export interface ClarificationOptions {
  /** A reply with this keyword on a line of its own is a question. */
  keyword: string;
  /** Gets a question answered, as the step with this key. */
  answer: ((key: string, question: string) => Promise<Reply>) | undefined;
}

/** Asks an agent, and gets its questions answered until it gives a real reply or has asked too often. */
export async function askWithAnswers(caller: Caller, call: Call, { keyword, answer }: ClarificationOptions): Promise<Reply> {
  let reply = await caller.ask(call);
  if (!answer) return reply;
  for (let round = 1; round <= MAX_CLARIFICATIONS && reply.ok && saysKeyword(reply.text, keyword); round += 1) {
    const keys = questionKeys(call.key, round);
    const given = await answer(keys.clarify, reply.text);
    const told = given.ok ? given.text : "Nobody could answer. Use your judgement, and say what you assumed.";
    reply = await caller.ask({ ...call, key: keys.answered, prompt: answerPrompt(call.prompt, reply.text, told) });
  }
  return reply;
}
