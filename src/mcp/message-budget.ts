/** One message of a server's. A longer one ends the server, or the answer that it came in. */
export const LONGEST_MESSAGE = 4_000_000;
/** How much structure a message may have: to read more would silence everybody else. */
export const MESSAGE_BUDGET = { depth: 64, entries: 40_000 };
