/** A longer task list is asked for again, since every task costs a whole stream. */
export const MAX_TASKS = 32;
/** How often an agent may ask back before it has to use its judgement. */
export const MAX_CLARIFICATIONS = 3;
/** How often a stream's engineer may fix what its merge broke. */
export const MAX_MERGE_FIXES = 2;
/** How many conflicting merges of a stream are resolved, and how often the engineer is asked about each. */
export const MAX_CONFLICTS = 2;
export const MAX_SETTLINGS = 2;
