/** Aborting with this reason lets workers continue: the restarted daemon takes their results. */
export const CLOSING = "the daemon is closing";
