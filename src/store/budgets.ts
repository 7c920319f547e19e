import type { Limit } from "../home/safety-config.ts";
import { AMOUNTS, type Amounts, type BudgetKind } from "../protocol/budgets.ts";
import type { Store } from "./open.ts";

/** What a budget is for. */
export interface BudgetName {
  kind: BudgetKind;
  name: string;
  /** The squads whose own limits apply; "" is everybody. */
  places: readonly string[];
}

export interface BudgetDecision extends Pick<BudgetName, "kind" | "name"> {
  /** The approval that was decided. */
  approval: string;
  /** The owner that it blocked, and which attempt. */
  owner: string;
  life: number;
}

/** Running work that budgets apply to. */
export interface Running {
  messages: { id: string; conversation: string }[];
  tasks: { id: string; squad: string; conversation: string | null }[];
  runs: { id: string; squad: string | null; conversation: string | null }[];
}

/** People's decisions about exhausted budgets, and who was told. */
export function createBudgetTable({ db }: Store, now: () => Date = () => new Date()) {
  const time = () => now().toISOString();
  const raise =
    db.prepare(`INSERT INTO budget_decisions (kind, name, approval, raised, tokens, calls, money, owner, life, created_at)
    SELECT :kind, :name, :approval, 1, :tokens, :calls, :money, :owner, :life, :at
    WHERE NOT EXISTS (SELECT 1 FROM budget_decisions WHERE approval = :approval)`);
  const stop = db.prepare(`INSERT INTO budget_decisions (kind, name, approval, raised, owner, life, created_at)
    VALUES (?, ?, ?, 0, ?, ?, ?) ON CONFLICT (approval, owner) DO NOTHING`);
  const sums = db.prepare(`SELECT COUNT(DISTINCT approval) AS decisions, COALESCE(SUM(tokens), 0) AS tokens,
    COALESCE(SUM(calls), 0) AS calls, COALESCE(SUM(money), 0) AS money
    FROM budget_decisions WHERE kind = ? AND name = ? AND seq > ?`);
  const stopped = db.prepare(
    "SELECT 1 FROM budget_decisions WHERE kind = ? AND name = ? AND seq > ? AND owner = ? AND life = ? AND raised = 0",
  );
  const limit = db.prepare("SELECT amounts, since FROM budget_limits WHERE place = ? AND kind = ?");
  const setLimit = db.prepare(`INSERT INTO budget_limits (place, kind, amounts, since)
    VALUES (?, ?, ?, (SELECT COALESCE(MAX(seq), 0) FROM budget_decisions))
    ON CONFLICT (place, kind) DO UPDATE SET amounts = excluded.amounts, since = excluded.since`);
  const firstLimit = db.prepare("INSERT INTO budget_limits (place, kind, amounts, since) VALUES (?, ?, ?, 0)");
  const forgetNews = db.prepare("DELETE FROM budget_news WHERE kind = ?");
  const news = db.prepare("INSERT INTO budget_news (kind, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
  const running = {
    messages: db.prepare(
      "SELECT id, conversation FROM messages INDEXED BY messages_waiting WHERE status IN ('queued','running') AND status = 'running' ORDER BY seq",
    ),
    tasks:
      db.prepare(`SELECT id, squad_slug AS squad, CASE WHEN json_valid(origin) THEN origin ->> '$.conversation' END AS conversation
      FROM agent_tasks INDEXED BY agent_tasks_open WHERE status IN ('queued','running') AND status = 'running' ORDER BY seq`),
    runs: db.prepare("SELECT id, squad, conversation FROM runs INDEXED BY runs_unfinished WHERE status = 'running' ORDER BY seq"),
  };
  type LimitRow = { amounts: string; since: number } | undefined;
  const since = ({ kind, places }: BudgetName) =>
    Math.max(0, ...["", ...places].map((place) => (limit.get(place, kind) as LimitRow)?.since ?? 0));
  return {
    /**
     * Stores a limit's current value. Returns whether it changed or was set again: then earlier raises no longer count, and
     * warnings are repeated.
     */
    noteLimit(place: string, kind: BudgetKind, amounts: Limit | undefined, { isNew = false } = {}): boolean {
      const text = JSON.stringify(AMOUNTS.map((amount) => amounts?.[amount] ?? null));
      const before = limit.get(place, kind) as LimitRow;
      if (before === undefined && !isNew) firstLimit.run(place, kind, text);
      if (before === undefined ? !isNew : before.amounts === text && !isNew) return false;
      setLimit.run(place, kind, text);
      forgetNews.run(kind);
      return true;
    },
    /** The sum of raises and the number of decisions since a budget's limit was set. */
    raised: (of: BudgetName) => ({
      ...(sums.get(of.kind, of.name, since(of)) as unknown as Amounts & { decisions: number }),
    }),
    /** An approval raises a budget once, however many callers waited for it. */
    raise({ kind, name, approval, owner, life }: BudgetDecision, by: Amounts): void {
      raise.run({ kind, name, approval, owner, life, ...by, at: time() });
    },
    stop({ kind, name, approval, owner, life }: BudgetDecision): void {
      stop.run(kind, name, approval, owner, life, time());
    },
    /** Whether this budget stopped this attempt of some work. */
    isStopped: (of: BudgetName, { owner, life }: Pick<BudgetDecision, "owner" | "life">) =>
      stopped.get(of.kind, of.name, since(of), owner, life) !== undefined,
    /** True only the first time since the limit was set. */
    isNews: ({ kind, name }: Pick<BudgetName, "kind" | "name">): boolean => Number(news.run(kind, name, time()).changes) > 0,
    running: (): Running => ({
      messages: running.messages.all() as unknown as Running["messages"],
      tasks: running.tasks.all() as unknown as Running["tasks"],
      runs: running.runs.all() as unknown as Running["runs"],
    }),
  };
}
export type BudgetTable = ReturnType<typeof createBudgetTable>;
