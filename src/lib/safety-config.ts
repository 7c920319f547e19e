import { z } from "zod";
import { covers } from "./glob.ts";

/** How high the wall around a command is. */
export const SandboxHeight = z.enum(["secrets", "workspace"]);
export type SandboxHeight = z.infer<typeof SandboxHeight>;

/** When a person is asked: never, when a call wants past the wall, or before every effect. */
export const ApprovalMode = z.enum(["none", "wall", "effects"]);
export type ApprovalMode = z.infer<typeof ApprovalMode>;

/** What is to be done about calls of a tool whose command, path or address fits; in `match`, `*` stands for anything. */
export const ApprovalRule = z.strictObject({
  tool: z
    .string()
    .max(100)
    .regex(/^(?:[a-z][a-z0-9_]*|\*)$/, 'must be the name of a tool, such as "shell", or "*" for all'),
  match: z
    .string()
    .max(1_000)
    .refine((match) => match.trim() !== "", 'must not be empty; "*" stands for anything')
    .refine((match) => match === match.trim(), "must not begin or end with a space: no call would fit")
    .refine((match) => !match.includes("\0"), "must not hold a NUL character"),
  // biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
  then: z.enum(["allow", "ask", "deny"]),
});
export type ApprovalRule = z.infer<typeof ApprovalRule>;

/** The first that fits counts, so one that an earlier one makes useless is a mistake. */
export const ApprovalRules = z
  .array(ApprovalRule)
  .max(500)
  .superRefine((rules, context) => {
    for (const [index, rule] of rules.entries()) {
      const earlier = rules.slice(0, index).findIndex((each) => isOverruled(rule, each));
      if (earlier < 0) continue;
      context.addIssue({ code: "custom", path: [index], message: overruled(rule, rules[earlier]!, earlier) });
    }
  });

function isOverruled(rule: ApprovalRule, earlier: ApprovalRule): boolean {
  return (earlier.tool === "*" || earlier.tool === rule.tool) && covers(earlier.match, rule.match);
}

function overruled(rule: ApprovalRule, earlier: ApprovalRule, index: number): string {
  const same = rule.tool === earlier.tool && rule.match === earlier.match;
  const what = `approvalRules.${index} (${earlier.tool} "${earlier.match}": ${earlier.then})`;
  if (same && rule.then === earlier.then) return `is the same as ${what}: take one of them out`;
  if (same) return `contradicts ${what}: the first that fits counts, so say it once`;
  return `can never be reached: everything that fits it fits ${what} before it. Put it above that one, or take it out`;
}

/** How much may be used up before a person is asked; money in the currency of the prices. */
export const Limit = z.strictObject({
  tokens: z.number().int().positive().optional(),
  calls: z.number().int().positive().optional(),
  money: z.number().positive().optional(),
});
export type Limit = z.infer<typeof Limit>;

export const Budgets = z.strictObject({
  turn: Limit.optional(),
  task: Limit.optional(),
  run: Limit.optional(),
  conversation: Limit.optional(),
  day: Limit.optional(),
});
export type Budgets = z.infer<typeof Budgets>;

/** What a million tokens of a model cost. */
export const Price = z.strictObject({
  input: z.number().min(0),
  output: z.number().min(0),
  cacheRead: z.number().min(0).optional(),
});
export type Price = z.infer<typeof Price>;

/** What a squad may say for itself. It only tightens what holds for all. */
export const SquadSafety = z.strictObject({
  sandbox: SandboxHeight.optional(),
  approvals: ApprovalMode.optional(),
  budgets: Budgets.optional(),
});
export type SquadSafety = z.infer<typeof SquadSafety>;
