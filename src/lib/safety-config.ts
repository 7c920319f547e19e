import { z } from "zod";

/** How high the wall around a command is. */
export const SandboxHeight = z.enum(["secrets", "workspace"]);
export type SandboxHeight = z.infer<typeof SandboxHeight>;

/** When a person is asked: never, when a call wants past the wall, or before every effect. */
export const ApprovalMode = z.enum(["none", "wall", "effects"]);
export type ApprovalMode = z.infer<typeof ApprovalMode>;

/** What is to be done about calls of a tool whose command, path or address fits; in `match`, `*` stands for anything. */
export const ApprovalRule = z.strictObject({
  tool: z.string().min(1).max(100),
  match: z.string().min(1).max(1_000),
  // biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
  then: z.enum(["allow", "ask", "deny"]),
});
export type ApprovalRule = z.infer<typeof ApprovalRule>;

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
