import type { Answer, Asked, Call, Failure } from "./act.ts";
import { cutToTokens, estimateTokens } from "./tokens.ts";

/** The part of an answer that is sent as one event. */
export type Step =
  | { kind: "reason" | "text" | "refusal"; text: string }
  | { kind: "choice"; choice: number; text: string }
  | { kind: "call"; position: number; call: Call; id: string | undefined }
  | { kind: "arguments"; position: number; call: Call; text: string };

/** An answer as a list of steps, cut to what the model may say. */
export interface Plan {
  steps: Step[];
  cut: boolean;
  refused: boolean;
  hasCalls: boolean;
  outputTokens: number;
  reasoningTokens: number;
  model: string;
  answer: Answer;
  failure: Failure | undefined;
}

const PIECE = 12;

/** Divides an answer into steps and cuts it at the output limit, which may be inside a piece or an argument. */
export function layOut(answer: Answer, asked: Asked, newId: () => string): Plan {
  const all = [...spoken(answer), ...called(answer, newId)];
  const steps: Step[] = [];
  let left = asked.outputLimit;
  let cut = false;
  for (const step of all) {
    if (answer.cutAfter !== undefined && steps.length >= answer.cutAfter) {
      cut = true;
      break;
    }
    const cost = step.kind === "call" ? 1 : estimateTokens(step.text);
    if (cost <= left) {
      left -= cost;
      steps.push(step);
      continue;
    }
    const kept = step.kind === "call" ? "" : cutToTokens(step.text, left);
    if (kept && step.kind !== "call") steps.push({ ...step, text: kept });
    left = 0;
    cut = true;
    break;
  }
  const reasoning = steps.flatMap((step) => (step.kind === "reason" ? [step.text] : []));
  return {
    steps,
    cut: cut || answer.cutAfter !== undefined,
    refused: answer.refuse !== undefined,
    hasCalls: steps.some((step) => step.kind === "call"),
    outputTokens: asked.outputLimit - left,
    reasoningTokens: reasoning.reduce((sum, text) => sum + estimateTokens(text), 0),
    model: answer.as ?? asked.servedAs,
    answer,
    failure: typeof answer.ends === "object" ? answer.ends : undefined,
  };
}

/** All text of one kind. */
export function textOf(plan: Plan, kind: "reason" | "text" | "refusal"): string {
  return plan.steps.map((step) => (step.kind === kind ? step.text : "")).join("");
}

/** The calls of a plan, with the arguments sent before the end. */
export function callsOf(plan: Plan): { position: number; call: Call; id: string | undefined; args: string }[] {
  return plan.steps.flatMap((step) => {
    if (step.kind !== "call") return [];
    const args = plan.steps.map((other) => (other.kind === "arguments" && other.position === step.position ? other.text : ""));
    return [{ position: step.position, call: step.call, id: step.id, args: args.join("") }];
  });
}

function spoken(answer: Answer): Step[] {
  const think = pieces(answer.think);
  return [
    ...pieces(answer.reason).map((text): Step => ({ kind: "reason", text })),
    ...(think.length > 0 ? ["<think>", ...think, "</think>\n\n"] : []).map((text): Step => ({ kind: "text", text })),
    ...pieces(answer.say).map((text): Step => ({ kind: "text", text })),
    ...pieces(answer.refuse).map((text): Step => ({ kind: "refusal", text })),
    ...(answer.choices ?? []).map((text, position): Step => ({ kind: "choice", choice: position + 1, text })),
  ];
}

function called(answer: Answer, newId: () => string): Step[] {
  const calls = (answer.call ?? []).map((call, position) => {
    const id = call.id === undefined ? newId() : (call.id ?? undefined);
    const text = call.rawArgs ?? JSON.stringify(call.args ?? {});
    return {
      open: { kind: "call", position, call, id } satisfies Step,
      args: inPieces(text).map((piece): Step => ({ kind: "arguments", position, call, text: piece })),
    };
  });
  if (!answer.interleave) return calls.flatMap(({ open, args }) => [open, ...args]);
  const turns = Math.max(0, ...calls.map(({ args }) => args.length));
  return [
    ...calls.map(({ open }) => open),
    ...Array.from({ length: turns }, (_, turn) => calls.flatMap(({ args }) => args[turn] ?? [])).flat(),
  ];
}

function pieces(said: string | readonly string[] | undefined): readonly string[] {
  if (said === undefined) return [];
  return typeof said === "string" ? [said] : said;
}

/** Cuts between code points, never inside one. */
function inPieces(text: string): string[] {
  const characters = [...text];
  return Array.from({ length: Math.ceil(characters.length / PIECE) }, (_, at) =>
    characters.slice(at * PIECE, (at + 1) * PIECE).join(""),
  );
}
