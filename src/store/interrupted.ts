import type { Store } from "./open.ts";

/** Work that was running when the previous daemon ended. */
export interface Interrupted {
  id: string;
  text: string;
}

/** Finds work that the previous daemon left running. Query it before anything resumes. */
export function createInterruptedRows({ db }: Pick<Store, "db">) {
  const messages = db.prepare(
    "SELECT id, text FROM messages INDEXED BY messages_waiting WHERE status IN ('queued','running') AND status = 'running' ORDER BY seq",
  );
  const tasks = db.prepare("SELECT id, description AS text FROM agent_tasks WHERE status = 'running' ORDER BY seq");
  const uncertain = db.prepare(`SELECT count(*) AS count FROM tool_calls WHERE state = 'begun' AND kind = 'effect'
    AND owner IN (SELECT value FROM json_each(?))`);
  return {
    messages: () => messages.all() as unknown as Interrupted[],
    tasks: () => tasks.all() as unknown as Interrupted[],
    /** How many effects of this work have an intent but no result. */
    uncertainEffects: (owners: readonly string[]): number => (uncertain.get(JSON.stringify(owners)) as { count: number }).count,
  };
}
export type InterruptedRows = ReturnType<typeof createInterruptedRows>;
