import type { Store } from "./open.ts";
import { daysBefore, type RetentionLimits } from "./sweeps.ts";

/** A session of a pipeline's agent, and the run it belongs to. */
const OF_A_RUN = /^(swarm-(r_[0-9a-z]+)-[0-9a-f]{16})(?:-g\d+)?$/;

/** Sessions that will not be continued. */
export function createStaleSessions({ db }: Store) {
  // An unfinished message or task that started in a retired session still needs it.
  const retired = db.prepare(`
    SELECT id FROM sessions s WHERE (retired_at < :before OR (created_at < :before AND substr(owner, 1, 13) = 'conversation:'
      AND NOT EXISTS (SELECT 1 FROM conversations WHERE name = substr(owner, 14))))
    AND NOT EXISTS (SELECT 1 FROM messages INDEXED BY messages_waiting
      WHERE status IN ('queued','running') AND session_id = s.id)
    AND NOT EXISTS (SELECT 1 FROM agent_tasks INDEXED BY agent_tasks_open
      WHERE status IN ('queued','running') AND session_id = s.id)`);
  const run = db.prepare("SELECT status, finished_at AS finishedAt FROM runs WHERE id = ?");
  const forget = db.prepare("DELETE FROM sessions WHERE id = ?");
  return {
    /** Sessions on disk or in the tables that are retired, of deleted conversations, or of runs that ended long ago. */
    ids(names: readonly string[], { sessionsDays }: RetentionLimits, now: Date): string[] {
      const before = daysBefore(now, sessionsDays);
      const ended = (id: string) => {
        const row = run.get(id) as { status: string; finishedAt: string | null } | undefined;
        return row !== undefined && row.status !== "running" && row.finishedAt !== null && row.finishedAt < before;
      };
      const ofRuns = names.flatMap((name) => {
        const [, session, id] = OF_A_RUN.exec(name) ?? [];
        return session !== undefined && id !== undefined && ended(id) ? [session] : [];
      });
      return [...(retired.all({ before }) as { id: string }[]).map(({ id }) => id), ...new Set(ofRuns)];
    },
    forget: (id: string) => void forget.run(id),
  };
}
