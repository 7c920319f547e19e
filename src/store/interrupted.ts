import type { Store } from "./open.ts";

/** A piece of work that an earlier life of the daemon had begun. */
export interface Interrupted {
  id: string;
  text: string;
}

/** What an earlier life left under way; to be asked before anything goes on. */
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
    /** How many effects of these were begun and have no known end. */
    uncertainEffects: (owners: readonly string[]): number => (uncertain.get(JSON.stringify(owners)) as { count: number }).count,
  };
}
export type InterruptedRows = ReturnType<typeof createInterruptedRows>;
