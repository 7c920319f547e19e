import { z } from "zod";

/** The total usage of model calls. Cached tokens are part of the input. */
export const Usage = z.object({
  calls: z.number().int(),
  inputTokens: z.number().int(),
  outputTokens: z.number().int(),
  cacheReadTokens: z.number().int(),
});
export type Usage = z.infer<typeof Usage>;

const Count = z.number().int().nonnegative();

/** One model call, as the provider reported it. */
export const ModelCall = z.strictObject({
  model: z.string().max(300),
  inputTokens: Count,
  outputTokens: Count,
  cacheReadTokens: Count,
  durationMs: z.number().nonnegative(),
  /** Whether the embedded rehearsal model served it, which costs nothing. */
  rehearsal: z.boolean().optional(),
});
export type ModelCall = z.infer<typeof ModelCall>;

/** Who pays for a model call. */
export interface Spender {
  /** The message, task or run of the call. */
  owner: string;
  /** The caller, by its name in the tool journal. */
  actor: string;
  agent: string;
  conversation?: string | undefined;
  squad?: string | undefined;
  task?: string | undefined;
  run?: string | undefined;
  /** The key of a run's step. */
  step?: string | undefined;
  /** The channel through which the work was requested. */
  source?: string | undefined;
}

/** Records usage, and grants permission before it. */
export interface Spending {
  record(spender: Spender, call: ModelCall): void;
  /** Waits as long as the next model call must wait; a returned string is the reason not to make it. */
  permit(
    spender: Spender,
    options: { signal: AbortSignal; life: number; flush?: () => Promise<void> },
  ): Promise<string | undefined>;
}

export const UsageGroup = z.enum([
  "conversation",
  "squad",
  "agent",
  "task",
  "run",
  "schedule",
  "model",
  "day",
  "source",
  "actor",
]);
export type UsageGroup = z.infer<typeof UsageGroup>;

/** Usage and its cost, as far as prices are known. */
export const Cost = Usage.extend({
  /** How many of the calls the rehearsal model served. */
  rehearsalCalls: z.number().int(),
  money: z.number(),
  /** Whether `money` is incomplete because a model has no price. */
  partial: z.boolean(),
  unpriced: z.array(z.string()),
});
export type Cost = z.infer<typeof Cost>;

/** One line of a summary. `squad` distinguishes agents of the same name. */
export const UsageItem = Cost.extend({ name: z.string(), squad: z.string().optional() });
export type UsageItem = z.infer<typeof UsageItem>;

/** Usage by one group. The total is the sum of the items. */
export const UsageSummary = z
  .object({
    by: UsageGroup,
    /** The first day included, in UTC; null means everything ever recorded. */
    since: z.string().nullable(),
    total: Cost,
    items: z.array(UsageItem),
  })
  .meta({ id: "UsageSummary" });
export type UsageSummary = z.infer<typeof UsageSummary>;

export const noUsage = (): Usage => ({ calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0 });

export function addCall(usage: Usage, call: ModelCall): Usage {
  return {
    calls: usage.calls + 1,
    inputTokens: usage.inputTokens + call.inputTokens,
    outputTokens: usage.outputTokens + call.outputTokens,
    cacheReadTokens: usage.cacheReadTokens + call.cacheReadTokens,
  };
}
