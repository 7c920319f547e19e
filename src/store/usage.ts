import { type ModelCall, noUsage, type Usage } from "../protocol/usage.ts";
import type { Store } from "./open.ts";

const SUMS =
  "COUNT(*) AS calls, COALESCE(SUM(input_tokens), 0) AS inputTokens, COALESCE(SUM(output_tokens), 0) AS outputTokens, COALESCE(SUM(cache_read_tokens), 0) AS cacheReadTokens";
const GROUPS = { model: "model", actor: "actor", day: "substr(created_at, 1, 10)" } as const;
export type UsageGroup = keyof typeof GROUPS;

/** What every model call cost, and for whom it was made. */
export function createUsageLog(store: Store, now: () => Date = () => new Date()) {
  const insert = store.db.prepare(
    "INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const ofOwner = store.db.prepare(`SELECT ${SUMS} FROM usage WHERE owner = ?`);
  return {
    record(owner: string, actor: string, call: ModelCall): void {
      store.soft(() =>
        insert.run(
          owner,
          actor,
          call.model,
          call.inputTokens,
          call.outputTokens,
          call.cacheReadTokens,
          call.durationMs,
          now().toISOString(),
        ),
      );
    },
    of: (owner: string): Usage => (ofOwner.get(owner) as Usage | undefined) ?? noUsage(),
    by: (group: UsageGroup): (Usage & { name: string })[] =>
      store.db.prepare(`SELECT ${GROUPS[group]} AS name, ${SUMS} FROM usage GROUP BY 1 ORDER BY 1`).all() as unknown as (Usage & {
        name: string;
      })[],
  };
}
export type UsageLog = ReturnType<typeof createUsageLog>;
