import { z } from "zod";

/** What model calls used, added up. Cached tokens are part of the input. */
export const Usage = z.object({
  calls: z.number().int(),
  inputTokens: z.number().int(),
  outputTokens: z.number().int(),
  cacheReadTokens: z.number().int(),
});
export type Usage = z.infer<typeof Usage>;

/** One model call, as the provider reported it. */
export interface ModelCall {
  model: string;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  durationMs: number;
  /** Whether the embedded rehearsal model served it, which costs nothing. */
  rehearsal?: boolean;
}

/** For whom a model call is made. */
export interface Spender {
  /** The message, task or run whose call it is. */
  owner: string;
  /** Who called, by the name that the audit of tools has too. */
  actor: string;
  agent: string;
  conversation?: string | undefined;
  squad?: string | undefined;
  task?: string | undefined;
  run?: string | undefined;
  /** The step of a run, by its key. */
  step?: string | undefined;
  /** The channel that the work was asked for by. */
  source?: string | undefined;
}

/** Where what is used is written down, and asked for before it is used. */
export interface Spending {
  record(spender: Spender, call: ModelCall): void;
  /** Waits for as long as the next model call has to wait; the answer, if any, is why it must not be made. */
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

/** What was used and what it cost, as far as there are prices. */
export const Cost = Usage.extend({
  /** How many of the calls the rehearsal model served. */
  rehearsalCalls: z.number().int(),
  money: z.number(),
  /** Whether something is missing from `money`, because a model has no price. */
  partial: z.boolean(),
  unpriced: z.array(z.string()),
});
export type Cost = z.infer<typeof Cost>;

/** One line of a summary. `squad` tells agents of the same name apart. */
export const UsageItem = Cost.extend({ name: z.string(), squad: z.string().optional() });
export type UsageItem = z.infer<typeof UsageItem>;

/** What was used, by one of the groups. The total is the sum of the items. */
export const UsageSummary = z
  .object({
    by: UsageGroup,
    /** The first day that counts, in UTC; null is all there ever was. */
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
