import { codeOf, messageOf, UserError } from "../lib/errors.ts";

/** SQLite's primary result codes: https://sqlite.org/rescode.html */
const SQLITE = { busy: 5, locked: 6, noMemory: 7, readOnly: 8, interrupt: 9, ioError: 10, full: 13, cannotOpen: 14 } as const;
const FULL_DISK = ["ENOSPC", "EDQUOT"];
const SICK_DISK = ["EROFS", "EIO", "EMFILE", "ENFILE"];

/** Whether another process holds the database. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCodeOf(error);
  return code === SQLITE.busy || code === SQLITE.locked || /database (?:table )?is (?:locked|busy)/i.test(messageOf(error));
}

/** Whether the disk, or the user's quota, is full. */
export function isDiskFull(error: unknown): boolean {
  return some(error, (each) => sqliteCodeOf(each) === SQLITE.full || FULL_DISK.includes(codeOf(each) ?? ""));
}

/** Whether an error is about the machine and not about the work, which can then be retried later. */
export function isTemporary(error: unknown): boolean {
  if (isBusy(error) || isDiskFull(error)) return true;
  const codes: readonly (number | undefined)[] = Object.values(SQLITE);
  return some(error, (each) => codes.includes(sqliteCodeOf(each)) || SICK_DISK.includes(codeOf(each) ?? ""));
}

/** The message for a database or disk that cannot be written; undefined for any other error. */
export function storeTrouble(error: unknown): UserError | undefined {
  const trouble = (message: string, code?: string) =>
    new UserError(message, { trouble: "unavailable", cause: error, ...(code && { code }) });
  if (isBusy(error)) return trouble("Another program holds IO's database: nothing was accepted. Send it again in a moment.");
  if (isDiskFull(error)) return trouble(DISK_FULL, "disk_full");
  if (isTemporary(error)) return trouble("The disk cannot be written: nothing was accepted. Check it and send it again.");
  return undefined;
}

export const DISK_FULL = "The disk is full: nothing was accepted. Free some space and send it again.";

function sqliteCodeOf(error: unknown): number | undefined {
  if (codeOf(error) !== "ERR_SQLITE_ERROR") return undefined;
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : undefined;
}

/** Tests an error and its causes. */
function some(error: unknown, test: (each: unknown) => boolean): boolean {
  for (let each = error, depth = 0; each !== undefined && depth < 8; depth += 1) {
    if (test(each)) return true;
    each = each instanceof Error ? each.cause : undefined;
  }
  return false;
}
