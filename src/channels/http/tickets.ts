import { createHash, randomBytes } from "node:crypto";

const LIFE_MS = 60_000;
const MOST = 100;

/** Tickets that sign a browser in, each valid once and for a minute. */
export function createTickets(now: () => number = Date.now) {
  // Keyed by hash, so that the time of a lookup reveals nothing about a ticket.
  const open = new Map<string, number>();
  const nameOf = (ticket: string) => createHash("sha256").update(ticket).digest("hex");
  return {
    issue(): { ticket: string; expiresAt: string } {
      for (const [name, end] of open) if (end < now()) open.delete(name);
      for (const name of [...open.keys()].slice(0, Math.max(0, open.size - MOST + 1))) open.delete(name);
      const ticket = randomBytes(24).toString("base64url");
      const end = now() + LIFE_MS;
      open.set(nameOf(ticket), end);
      return { ticket, expiresAt: new Date(end).toISOString() };
    },
    /** Whether a ticket is valid; uses it up. */
    take(ticket: string): boolean {
      const name = nameOf(ticket);
      const end = open.get(name);
      open.delete(name);
      return end !== undefined && end >= now();
    },
  };
}
export type Tickets = ReturnType<typeof createTickets>;
