import { expect, test } from "vitest";
import { createTickets } from "../../../src/channels/http/tickets.ts";

test("a ticket signs in once and within its minute; what was never issued does not", () => {
  let at = 1_000_000;
  const tickets = createTickets(() => at);
  const [first, late] = [tickets.issue(), tickets.issue()];
  expect(tickets.take("a stranger's")).toBe(false);
  at += 59_999;
  expect([tickets.take(first.ticket), tickets.take(first.ticket)]).toEqual([true, false]);
  at += 2;
  expect(tickets.take(late.ticket)).toBe(false);
  expect(Date.parse(late.expiresAt)).toBe(1_060_000);
});
