import type { Store } from "./open.ts";

/** Small persistent values by name. */
export function createState({ db }: Store) {
  const read = db.prepare("SELECT value FROM io_state WHERE key = ?");
  const write = db.prepare(
    "INSERT INTO io_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  );
  const remove = db.prepare("DELETE FROM io_state WHERE key = ?");
  return {
    get: (key: string) => (read.get(key) as { value: string } | undefined)?.value,
    set: (key: string, value: string) => void write.run(key, value),
    delete: (key: string) => void remove.run(key),
  };
}
export type State = ReturnType<typeof createState>;
