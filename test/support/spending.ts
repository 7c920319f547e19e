import { expect } from "vitest";
import { type Model, usageOf } from "../../src/engine/rehearsal/wire.ts";
import type { Spending, UsageSummary } from "../../src/protocol/usage.ts";
import type { Store } from "../../src/store/open.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import type { TestDaemon } from "./daemon.ts";

/** Records usage and never refuses a call. */
export function unlimited(store: Store): Spending {
  return { record: createUsageLog(store).record, permit: async () => undefined };
}

/** The usage that a model reported, summed over all calls. */
export interface Served {
  calls: number;
  inputTokens: number;
  outputTokens: number;
}

/** Wraps a model to sum up the usage that it reports. */
export function counted(model: Model): { model: Model; served: Served } {
  const served: Served = { calls: 0, inputTokens: 0, outputTokens: 0 };
  return {
    served,
    model: async (request, index) => {
      const act = await model(request, index);
      if ("status" in act) return act;
      const { prompt_tokens, completion_tokens } = usageOf(act, request);
      served.calls += 1;
      served.inputTokens += prompt_tokens;
      served.outputTokens += completion_tokens;
      return act;
    },
  };
}

/** The daemon's usage, grouped by `by`. Also checks that the items of the summary add up to its total. */
export async function usageBy(daemon: TestDaemon, by: string): Promise<UsageSummary> {
  const summary = await daemon.json<UsageSummary>("GET", `/api/usage?by=${by}&since=all`);
  for (const key of ["calls", "inputTokens", "outputTokens", "cacheReadTokens"] as const)
    expect(summary.items.reduce((sum, item) => sum + item[key], 0)).toBe(summary.total[key]);
  return summary;
}
