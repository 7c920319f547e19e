import { expect } from "vitest";
import { type Model, usageOf } from "../../src/engine/rehearsal/wire.ts";
import type { Spending, UsageSummary } from "../../src/protocol/usage.ts";
import type { Store } from "../../src/store/open.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import type { TestDaemon } from "./daemon.ts";

/** Writes down what is used, and never says no. */
export function unlimited(store: Store): Spending {
  return { record: createUsageLog(store).record, permit: async () => undefined };
}

/** What a model says that it has used, added up over everything that it has served. */
export interface Served {
  calls: number;
  inputTokens: number;
  outputTokens: number;
}

/** A model that keeps count of what it reports. */
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

/** What a daemon has written down, by a group; every summary is held against its own lines. */
export async function usageBy(daemon: TestDaemon, by: string): Promise<UsageSummary> {
  const summary = await daemon.json<UsageSummary>("GET", `/api/usage?by=${by}&since=all`);
  for (const key of ["calls", "inputTokens", "outputTokens", "cacheReadTokens"] as const)
    expect(summary.items.reduce((sum, item) => sum + item[key], 0)).toBe(summary.total[key]);
  return summary;
}
