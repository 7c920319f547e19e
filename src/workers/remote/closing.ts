/** Aborting with this leaves workers at their work: the next life of the daemon takes their results. */
export const CLOSING = "the daemon is closing";
