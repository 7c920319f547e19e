import { z } from "zod";
import { covers, fits } from "../lib/glob.ts";
import { MODES } from "./mode-words.ts";
import { NewsFilter } from "./news-config.ts";
import { whyNotOpen } from "./open-arguments.ts";

/** How much IO may do without asking, from the strictest to the loosest. */
export const Mode = z.enum(MODES);
export type Mode = z.infer<typeof Mode>;

/** The sandbox heights, from the loosest to the strictest. */
export const SandboxHeight = z.enum(["secrets", "project", "workspace"]);
export type SandboxHeight = z.infer<typeof SandboxHeight>;

/** When a person is asked: never, when a call wants out of the sandbox, or before every effect. */
export const ApprovalMode = z.enum(["none", "wall", "effects"]);
export type ApprovalMode = z.infer<typeof ApprovalMode>;

/** A rule for calls of a tool whose command, path or address matches; `*` in `match` stands for anything. */
export const ApprovalRule = z.strictObject({
  tool: z
    .string()
    .max(100)
    .regex(/^[A-Za-z*][A-Za-z0-9_*-]*$/, 'must be the name of a tool, such as "shell"; "*" stands for anything')
    .describe("the name of a tool; `*` stands for anything, as in `mcp__github__*`"),
  match: z
    .string()
    .max(1_000)
    .refine((match) => match.trim() !== "", 'must not be empty; "*" stands for anything')
    .refine((match) => match === match.trim(), "must not begin or end with a space: no call would fit")
    .refine((match) => !match.includes("\0"), "must not hold a NUL character")
    .describe("the command, path or address; `*` stands for anything"),
  // biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
  then: z.enum(["allow", "ask", "deny"]).describe("what to do"),
});
export type ApprovalRule = z.infer<typeof ApprovalRule>;

/** The first match counts, so a rule that an earlier one makes unreachable is an error. */
export const ApprovalRules = z
  .array(ApprovalRule)
  .max(500)
  .superRefine((rules, context) => {
    for (const [index, rule] of rules.entries()) {
      const isForCommands = rule.then === "allow" && fits(rule.tool, "shell");
      const open = isForCommands ? whyNotOpen(rule.match) : undefined;
      if (open !== undefined) context.addIssue({ code: "custom", path: [index, "match"], message: open });
      const earlier = rules.slice(0, index).findIndex((each) => isOverruled(rule, each));
      if (earlier < 0) continue;
      context.addIssue({ code: "custom", path: [index], message: overruled(rule, rules[earlier]!, earlier) });
    }
  });

function isOverruled(rule: ApprovalRule, earlier: ApprovalRule): boolean {
  return covers(earlier.tool, rule.tool) && covers(earlier.match, rule.match);
}

function overruled(rule: ApprovalRule, earlier: ApprovalRule, index: number): string {
  const same = rule.tool === earlier.tool && rule.match === earlier.match;
  const what = `approvalRules.${index} (${earlier.tool} "${earlier.match}": ${earlier.then})`;
  if (same && rule.then === earlier.then) return `is the same as ${what}: take one of them out`;
  if (same) return `contradicts ${what}: the first that fits counts, so say it once`;
  return `can never be reached: everything that fits it fits ${what} before it. Put it above that one, or take it out`;
}

/** How much may be used before a person is asked; money in the currency of the prices. */
export const Limit = z.strictObject({
  tokens: z.number().int().positive().optional().describe("input and output tokens together"),
  calls: z.number().int().positive().optional().describe("calls of a model"),
  money: z.number().positive().optional().describe("in the currency of `prices`"),
});
export type Limit = z.infer<typeof Limit>;

export const Budgets = z.strictObject({
  turn: Limit.optional().describe("for one message, task or step"),
  task: Limit.optional().describe("for a task"),
  run: Limit.optional().describe("for a run"),
  conversation: Limit.optional().describe("for a conversation with the tasks and runs it asked for"),
  day: Limit.optional().describe("for a day in UTC"),
});
export type Budgets = z.infer<typeof Budgets>;

/** The price of a million tokens of a model. */
export const Price = z.strictObject({
  input: z.number().min(0).describe("a million input tokens"),
  output: z.number().min(0).describe("a million output tokens"),
  cacheRead: z.number().min(0).optional().describe("a million tokens read from the provider's cache; `input` if not set"),
});
export type Price = z.infer<typeof Price>;

/** A squad's own settings. They can only tighten the global ones. */
export const SquadSafety = z.strictObject({
  mode: Mode.optional(),
  sandbox: SandboxHeight.optional(),
  approvals: ApprovalMode.optional(),
  budgets: Budgets.optional(),
  /** Which news of its tasks is delivered at once. */
  news: NewsFilter.optional(),
});
export type SquadSafety = z.infer<typeof SquadSafety>;
