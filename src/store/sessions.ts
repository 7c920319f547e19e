import type { Store } from "./open.ts";

export interface SessionRow {
  id: string;
  owner: string;
  fingerprint: string;
  lastPromptId: string | null;
}

/** Each owner's session, what it was made from, and the last prompt it is known to contain. */
export function createSessionRows({ db }: Store, now: () => Date = () => new Date()) {
  const columns = "id, owner, fingerprint, last_prompt_id AS lastPromptId";
  const current = db.prepare(
    `SELECT ${columns} FROM sessions WHERE owner = ? AND retired_at IS NULL ORDER BY created_at DESC LIMIT 1`,
  );
  const find = db.prepare(`SELECT ${columns} FROM sessions WHERE id = ?`);
  const before = db.prepare(`SELECT b.id FROM sessions s JOIN sessions b ON b.owner = s.owner AND b.created_at <= s.created_at
    WHERE s.id = ? AND b.id <> s.id AND b.retired_at IS NOT NULL ORDER BY b.created_at DESC LIMIT 1`);
  const insert = db.prepare("INSERT INTO sessions (id, owner, fingerprint, created_at) VALUES (?, ?, ?, ?)");
  const retire = db.prepare("UPDATE sessions SET retired_at = ? WHERE owner = ? AND retired_at IS NULL");
  const accepted = db.prepare("UPDATE sessions SET last_prompt_id = ? WHERE id = ?");
  const ofOwner = db.prepare("SELECT id FROM sessions WHERE owner = ?");
  const forget = db.prepare("DELETE FROM sessions WHERE id = ?");
  const disown = db.prepare("UPDATE sessions SET owner = 'nobody', retired_at = coalesce(retired_at, ?) WHERE id = ?");
  const remove = db.prepare("DELETE FROM sessions WHERE owner = ?");
  return {
    current: (owner: string) => current.get(owner) as SessionRow | undefined,
    find: (id: string) => find.get(id) as SessionRow | undefined,
    /** The owner's previous session. */
    before: (id: string) => (before.get(id) as { id: string } | undefined)?.id,
    /** Begins a new session for an owner and retires the current one. */
    begin(id: string, owner: string, fingerprint: string): void {
      const time = now().toISOString();
      retire.run(time, owner);
      insert.run(id, owner, fingerprint, time);
    },
    accepted: (id: string, promptId: string) => void accepted.run(promptId, id),
    ofOwner: (owner: string): string[] => (ofOwner.all(owner) as { id: string }[]).map(({ id }) => id),
    forget: (id: string) => void forget.run(id),
    /** Orphans a session: it is deleted with the retired ones, and no later session continues it. */
    disown: (id: string) => void disown.run(now().toISOString(), id),
    /** Forgets an owner and returns its sessions. */
    remove(owner: string): string[] {
      const ids = (ofOwner.all(owner) as { id: string }[]).map((row) => row.id);
      remove.run(owner);
      return ids;
    },
  };
}
export type SessionRows = ReturnType<typeof createSessionRows>;
