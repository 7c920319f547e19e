import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { messageOf, usageError } from "../../lib/errors.ts";
import { packageRoot } from "../../lib/paths.ts";
import { type Act, type ChatMessage, type ChatRequest, type Model, textOf } from "./wire.ts";

const Step = z.union([
  z.strictObject({ call: z.string(), args: z.record(z.string(), z.unknown()).default({}) }),
  z.strictObject({ say: z.string() }),
]);
const Rules = z.strictObject({
  rules: z.array(z.strictObject({ when: z.string(), system: z.string().optional(), steps: z.array(Step).min(1) })).min(1),
});
type Rule = z.infer<typeof Rules>["rules"][number];

/** Added to every answer, so that nobody takes the rehearsal for a model. */
export const REHEARSAL_MARK = "— rehearsal model";

/** The rules of a home, or those that ship with IO. */
export function loadRules(home: string): Rule[] {
  const own = join(home, "rehearsal.yaml");
  const file = existsSync(own) ? own : join(packageRoot, "rehearsal", "rules.yaml");
  try {
    const { rules } = Rules.parse(parse(readFileSync(file, "utf8")));
    for (const rule of rules) new RegExp(`${rule.when}|${rule.system ?? ""}`);
    return rules;
  } catch (error) {
    throw usageError(`${file}: ${messageOf(error)}`, error);
  }
}

/** A model that plays the first rule that fits, one step an answer. */
export function createImproviser(rules: readonly Rule[]): Model {
  return (request) => {
    const start = request.messages.findLastIndex((message) => message.role === "user");
    const asked = spoken(request.messages[start]);
    const system = textOf(request.messages.find((message) => message.role === "system"));
    const since = request.messages.slice(start + 1);
    const done = since.filter((message) => message.role === "assistant").length;
    for (const rule of rules) {
      const groups = new RegExp(rule.when, "i").exec(asked);
      if (!groups || (rule.system !== undefined && !new RegExp(rule.system, "i").test(system))) continue;
      if (!rule.steps.every((step) => "say" in step || isOffered(step.call, request))) continue;
      return play(rule.steps[done] ?? { say: "" }, [...groups], textOf(since.findLast((message) => message.role === "tool")));
    }
    return { say: `I have no rule for this. ${REHEARSAL_MARK}` };
  };
}

function play(step: z.infer<typeof Step>, groups: string[], result: string): Act {
  const fill = (value: unknown): unknown => {
    if (typeof value === "string")
      return value.replace(/\$(result|\d)/g, (_, name: string) => (name === "result" ? result : (groups[Number(name)] ?? "")));
    if (Array.isArray(value)) return value.map(fill);
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item)]));
    return value;
  };
  if ("call" in step) return { call: [{ tool: step.call, args: fill(step.args) }] };
  return { say: `${fill(step.say)}\n\n${REHEARSAL_MARK}`.match(/[\s\S]{1,24}/gu) ?? [] };
}

function isOffered(tool: string, request: ChatRequest): boolean {
  return request.tools?.some((offered) => offered.function.name === tool) ?? false;
}

/** What was said, without what the runtime and IO put before it. */
function spoken(message: ChatMessage | undefined): string {
  return textOf(message)
    .replace(/^<current_datetime>[^<]*<\/current_datetime>\s*/, "")
    .replace(/^\[via [a-z]+\] /, "")
    .trim();
}
