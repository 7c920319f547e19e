import { type ModelCall, noUsage, type Spender, type Usage, type UsageGroup } from "../protocol/usage.ts";
import { isTemporary } from "./faults.ts";
import type { Store } from "./open.ts";

/** One model's usage for one name in a group; the name is empty for usage that belongs to none. */
export interface UsagePart extends Usage {
  name: string;
  squad: string;
  model: string;
  rehearsal: boolean;
}

/** What a limit can apply to. */
export type Spent =
  | { of: "owner"; owner: string }
  | { of: "step"; run: string; step: string }
  | { of: "task" | "run" | "conversation"; name: string }
  | { of: "day"; day: string; squad?: string | undefined };

const ROWS =
  "COUNT(*) AS calls, COALESCE(SUM(input_tokens), 0) AS inputTokens, COALESCE(SUM(output_tokens), 0) AS outputTokens, COALESCE(SUM(cache_read_tokens), 0) AS cacheReadTokens";
const SUMS =
  "SUM(calls) AS calls, SUM(input_tokens) AS inputTokens, SUM(output_tokens) AS outputTokens, SUM(cache_read_tokens) AS cacheReadTokens";

/** Every model call with its payer, and daily sums, which are kept longer than the calls. */
export function createUsageLog(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare(
    `INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at,
      conversation, squad, agent, task, run, step, source, rehearsal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const ofOwner = db.prepare(`SELECT ${ROWS} FROM usage WHERE owner = ?`);
  const parts = createParts(store);
  const unwritten: Parameters<typeof insert.run>[] = [];
  /** Calls that could not be stored because the database is locked or the disk is full; retried next time. */
  const write = () => {
    try {
      for (let row = unwritten[0]; row; row = unwritten[0]) {
        const values = row;
        store.soft(() => insert.run(...values));
        unwritten.shift();
      }
    } catch (error) {
      if (isTemporary(error)) return;
      unwritten.shift();
      throw error;
    }
  };
  return {
    record(spender: Spender, call: ModelCall): void {
      const { owner, actor, conversation = null, squad = null, agent, task = null, run = null, step = null } = spender;
      const { model, inputTokens, outputTokens, cacheReadTokens, durationMs, rehearsal = false } = call;
      unwritten.push([
        ...[owner, actor, model, inputTokens, outputTokens, cacheReadTokens, durationMs, now().toISOString()],
        ...[conversation, squad, agent, task, run, step, spender.source ?? null, rehearsal ? 1 : 0],
      ]);
      write();
    },
    of(owner: string): Usage {
      write();
      return (ofOwner.get(owner) as Usage | undefined) ?? noUsage();
    },
    /** Usage by group and model since a day. */
    by(group: UsageGroup, since = ""): UsagePart[] {
      write();
      return parts.by(group, since);
    },
    /** Usage of one name in a group, by model. */
    ofName(group: UsageGroup, name: string): UsagePart[] {
      write();
      return parts.ofName(group, name);
    },
    /** Usage that counts against a limit, by model; rehearsal is free. */
    spent(what: Spent): UsagePart[] {
      write();
      return parts.spent(what);
    },
  };
}
export type UsageLog = ReturnType<typeof createUsageLog>;

function createParts({ db }: Store) {
  const whole = (name: string) =>
    db.prepare(
      `SELECT ${name} AS name, '' AS squad, model, rehearsal, ${SUMS} FROM usage_sums WHERE kind = 'total' AND day >= :since
       GROUP BY 1, model, rehearsal`,
    );
  const byModel = whole("model");
  const byDay = whole("day");
  const byName = db.prepare(
    `SELECT name, squad, model, rehearsal, ${SUMS} FROM usage_sums WHERE kind = :group AND day >= :since
     GROUP BY name, squad, model, rehearsal`,
  );
  const oneName = db.prepare(
    `SELECT name, squad, model, rehearsal, ${SUMS} FROM usage_sums INDEXED BY usage_sums_by_name
     WHERE kind = ? AND name = ? AND name <> '' GROUP BY squad, model, rehearsal`,
  );
  const models = (from: string) => db.prepare(`SELECT model, ${from} AND rehearsal = 0 GROUP BY model`);
  const ofOwner = models(`${ROWS} FROM usage WHERE owner = ?`);
  const ofStep = models(`${ROWS} FROM usage WHERE run = ? AND step = ?`);
  const ofName = models(`${SUMS} FROM usage_sums INDEXED BY usage_sums_by_name WHERE kind = ? AND name = ? AND name <> ''`);
  const ofDay = models(`${SUMS} FROM usage_sums WHERE kind = ? AND day = ? AND name = ?`);
  const rowsOf = (what: Spent): unknown[] => {
    if (what.of === "owner") return ofOwner.all(what.owner);
    if (what.of === "step") return ofStep.all(what.run, what.step);
    if (what.of !== "day") return ofName.all(what.of, what.name);
    return what.squad === undefined ? ofDay.all("total", what.day, "") : ofDay.all("squad", what.day, what.squad);
  };
  const partOf = (row: unknown): UsagePart => {
    const { name = "", squad = "", rehearsal, ...rest } = row as Omit<UsagePart, "rehearsal"> & { rehearsal?: number };
    return { name, squad, rehearsal: rehearsal === 1, ...rest };
  };
  return {
    by(group: UsageGroup, since: string): UsagePart[] {
      const rows =
        group === "model" ? byModel.all({ since }) : group === "day" ? byDay.all({ since }) : byName.all({ group, since });
      return rows.map(partOf);
    },
    ofName: (group: UsageGroup, name: string): UsagePart[] => oneName.all(group, name).map(partOf),
    spent: (what: Spent): UsagePart[] => rowsOf(what).map(partOf),
  };
}
