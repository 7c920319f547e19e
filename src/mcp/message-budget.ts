/** The longest message of a server. A longer one ends the server, or the response that contained it. */
export const LONGEST_MESSAGE = 4_000_000;
/** The most structure of a message: parsing more would block the event loop for everybody. */
export const MESSAGE_BUDGET = { depth: 64, entries: 40_000 };
