import type { Spending } from "../../src/protocol/usage.ts";
import type { Store } from "../../src/store/open.ts";
import { createUsageLog } from "../../src/store/usage.ts";

/** Writes down what is used, and never says no. */
export function unlimited(store: Store): Spending {
  return { record: createUsageLog(store).record, permit: async () => undefined };
}
