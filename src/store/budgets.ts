import type { Amounts, BudgetKind } from "../protocol/budgets.ts";
import type { Store } from "./open.ts";

/** A budget by what it is for. */
export interface BudgetName {
  kind: BudgetKind;
  name: string;
}

export interface BudgetDecision extends BudgetName {
  /** The approval that was decided. */
  approval: string;
  /** Whose work it held up, and which life of it. */
  owner: string;
  life: number;
}

/** What runs now, as far as budgets are about it. */
export interface Running {
  messages: { id: string; conversation: string }[];
  tasks: { id: string; squad: string; conversation: string | null }[];
  runs: { id: string; squad: string | null; conversation: string | null }[];
}

/** What people decided about budgets that were used up, and whom it was told. */
export function createBudgetTable({ db }: Store, now: () => Date = () => new Date()) {
  const time = () => now().toISOString();
  const raise =
    db.prepare(`INSERT INTO budget_decisions (kind, name, approval, raised, tokens, calls, money, owner, life, created_at)
    SELECT :kind, :name, :approval, 1, :tokens, :calls, :money, :owner, :life, :at
    WHERE NOT EXISTS (SELECT 1 FROM budget_decisions WHERE approval = :approval)`);
  const stop = db.prepare(`INSERT INTO budget_decisions (kind, name, approval, raised, owner, life, created_at)
    VALUES (?, ?, ?, 0, ?, ?, ?) ON CONFLICT (approval, owner) DO NOTHING`);
  const sums = db.prepare(`SELECT COUNT(DISTINCT approval) AS decisions, COALESCE(SUM(tokens), 0) AS tokens,
    COALESCE(SUM(calls), 0) AS calls, COALESCE(SUM(money), 0) AS money FROM budget_decisions WHERE kind = ? AND name = ?`);
  const stopped = db.prepare(
    "SELECT 1 FROM budget_decisions WHERE kind = ? AND name = ? AND owner = ? AND life = ? AND raised = 0",
  );
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
  return {
    /** What a budget was raised by so far, and how often it was decided on. */
    raised: ({ kind, name }: BudgetName) => ({ ...(sums.get(kind, name) as unknown as Amounts & { decisions: number }) }),
    /** The same approval raises once, however many waited for it. */
    raise({ kind, name, approval, owner, life }: BudgetDecision, by: Amounts): void {
      raise.run({ kind, name, approval, owner, life, ...by, at: time() });
    },
    stop({ kind, name, approval, owner, life }: BudgetDecision): void {
      stop.run(kind, name, approval, owner, life, time());
    },
    /** Whether this life of some work was told to stop by this budget. */
    isStopped: ({ kind, name }: BudgetName, { owner, life }: Pick<BudgetDecision, "owner" | "life">) =>
      stopped.get(kind, name, owner, life) !== undefined,
    /** True the first time, and never again. */
    isNews: ({ kind, name }: BudgetName): boolean => Number(news.run(kind, name, time()).changes) > 0,
    running: (): Running => ({
      messages: running.messages.all() as unknown as Running["messages"],
      tasks: running.tasks.all() as unknown as Running["tasks"],
      runs: running.runs.all() as unknown as Running["runs"],
    }),
  };
}
export type BudgetTable = ReturnType<typeof createBudgetTable>;
