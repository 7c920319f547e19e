import { type ModelCall, noUsage, type Usage } from "../protocol/usage.ts";
import { isBusy, type Store } from "./open.ts";

const SUMS =
  "COUNT(*) AS calls, COALESCE(SUM(input_tokens), 0) AS inputTokens, COALESCE(SUM(output_tokens), 0) AS outputTokens, COALESCE(SUM(cache_read_tokens), 0) AS cacheReadTokens";
export type UsageGroup = "model" | "actor" | "day";

/** What every model call cost, and for whom it was made. */
export function createUsageLog(store: Store, now: () => Date = () => new Date()) {
  const insert = store.db.prepare(
    "INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const ofOwner = store.db.prepare(`SELECT ${SUMS} FROM usage WHERE owner = ?`);
  const summed = (column: UsageGroup) =>
    store.db.prepare(
      `SELECT ${column} AS name, SUM(calls) AS calls, SUM(input_tokens) AS inputTokens, SUM(output_tokens) AS outputTokens,
       SUM(cache_read_tokens) AS cacheReadTokens FROM usage_daily GROUP BY 1 ORDER BY 1`,
    );
  const sums = { model: summed("model"), actor: summed("actor"), day: summed("day") };
  const unwritten: Parameters<typeof insert.run>[] = [];
  /** What another process keeps from being written stays here until the next time. */
  const write = () => {
    try {
      for (let row = unwritten[0]; row; row = unwritten[0]) {
        const values = row;
        store.atOnce(() => store.soft(() => insert.run(...values)));
        unwritten.shift();
      }
    } catch (error) {
      if (isBusy(error)) return;
      unwritten.shift();
      throw error;
    }
  };
  return {
    record(owner: string, actor: string, call: ModelCall): void {
      const { model, inputTokens, outputTokens, cacheReadTokens, durationMs } = call;
      unwritten.push([owner, actor, model, inputTokens, outputTokens, cacheReadTokens, durationMs, now().toISOString()]);
      write();
    },
    of(owner: string): Usage {
      write();
      return (ofOwner.get(owner) as Usage | undefined) ?? noUsage();
    },
    /** From the sums of each day, which outlive the calls themselves. */
    by: (group: UsageGroup): (Usage & { name: string })[] => sums[group].all() as unknown as (Usage & { name: string })[],
  };
}
export type UsageLog = ReturnType<typeof createUsageLog>;
