import type { Store } from "./open.ts";

export interface SessionRow {
  id: string;
  owner: string;
  fingerprint: string;
  lastPromptId: string | null;
}

/** Which session belongs to whom, what it was made of, and the last prompt it is known to hold. */
export function createSessionRows({ db }: Store, now: () => Date = () => new Date()) {
  const columns = "id, owner, fingerprint, last_prompt_id AS lastPromptId";
  const current = db.prepare(
    `SELECT ${columns} FROM sessions WHERE owner = ? AND retired_at IS NULL ORDER BY created_at DESC LIMIT 1`,
  );
  const find = db.prepare(`SELECT ${columns} FROM sessions WHERE id = ?`);
  const insert = db.prepare("INSERT INTO sessions (id, owner, fingerprint, created_at) VALUES (?, ?, ?, ?)");
  const retire = db.prepare("UPDATE sessions SET retired_at = ? WHERE owner = ? AND retired_at IS NULL");
  const accepted = db.prepare("UPDATE sessions SET last_prompt_id = ? WHERE id = ?");
  const ofOwner = db.prepare("SELECT id FROM sessions WHERE owner = ?");
  const remove = db.prepare("DELETE FROM sessions WHERE owner = ?");
  return {
    current: (owner: string) => current.get(owner) as SessionRow | undefined,
    find: (id: string) => find.get(id) as SessionRow | undefined,
    /** Begins a new session for an owner; the one it had is retired. */
    begin(id: string, owner: string, fingerprint: string): void {
      const time = now().toISOString();
      retire.run(time, owner);
      insert.run(id, owner, fingerprint, time);
    },
    accepted: (id: string, promptId: string) => void accepted.run(promptId, id),
    /** Forgets an owner, and tells which sessions it had. */
    remove(owner: string): string[] {
      const ids = (ofOwner.all(owner) as { id: string }[]).map((row) => row.id);
      remove.run(owner);
      return ids;
    },
  };
}
export type SessionRows = ReturnType<typeof createSessionRows>;
