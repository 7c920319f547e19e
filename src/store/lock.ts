import { DatabaseSync } from "@photostructure/sqlite";
import { messageOf } from "../lib/errors.ts";

/** Takes a lock that the system itself releases when this process ends, however it ends. Undefined: somebody else has it. */
export function takeLock(path: string): { release(): void } | undefined {
  const db = new DatabaseSync(path);
  try {
    db.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE");
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (/locked|busy/i.test(messageOf(error))) return undefined;
    throw error;
  }
}
