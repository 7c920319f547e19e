import { existsSync, readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import { messageOf } from "../lib/errors.ts";

/** Takes a lock that the system itself releases when this process ends, however it ends. Undefined: somebody else has it. */
export function takeLock(path: string): { release(): void } | undefined {
  const db = new DatabaseSync(path);
  try {
    // Whoever asks for the holder is done within this time.
    db.exec("PRAGMA busy_timeout = 250; BEGIN EXCLUSIVE");
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** Who has the lock: undefined for nobody. Where the system does not tell whose it is, the pid is missing. */
export function lockHolder(path: string): { pid?: number } | undefined {
  if (!existsSync(path)) return undefined;
  let db: InstanceType<typeof DatabaseSync> | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true });
    db.exec("PRAGMA busy_timeout = 0; SELECT count(*) FROM sqlite_master");
    return undefined;
  } catch (error) {
    // A file that is no lock, or cannot be opened, is held by nobody.
    return isBusy(error) ? pidOnLinux(path) : undefined;
  } finally {
    db?.close();
  }
}

/** Linux lists every lock with the file's number and the pid of its holder. */
function pidOnLinux(path: string): { pid?: number } {
  try {
    const { ino } = statSync(path);
    const lines = readFileSync("/proc/locks", "utf8").split("\n");
    const held = lines.find((line) => / WRITE /.test(line) && line.includes(`:${ino} `));
    const pid = Number(held?.trim().split(/\s+/)[4]);
    return pid > 0 ? { pid } : {};
  } catch {
    // Another system, or one that does not show it.
    return {};
  }
}

function isBusy(error: unknown): boolean {
  return /locked|busy/i.test(messageOf(error));
}
