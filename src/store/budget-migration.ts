/** When each limit was last set: earlier raises no longer count. `place` is a squad, or "" for all. */
export const BUDGET_MIGRATION = {
  name: "0021-budget-limits",
  sql: `
    CREATE TABLE budget_limits (
      place TEXT NOT NULL,
      kind TEXT NOT NULL,
      amounts TEXT NOT NULL,
      since INTEGER NOT NULL,
      PRIMARY KEY (place, kind)
    ) WITHOUT ROWID;
  `,
};
