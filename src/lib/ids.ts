import { randomBytes } from "node:crypto";

/** A short id that sorts by creation time (to the millisecond): `m_…` for a message, `t_…` for a task, `r_…` for a run. */
export function newId(prefix: string, now = Date.now()): string {
  return `${prefix}_${now.toString(36).padStart(9, "0")}${randomBytes(5).toString("hex")}`;
}
