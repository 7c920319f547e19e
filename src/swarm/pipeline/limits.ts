/** More tasks than this are asked for again: it would be a bill, not a plan. */
export const MAX_TASKS = 32;
/** How often an agent may ask back before it has to use its judgement. */
export const MAX_CLARIFICATIONS = 3;
/** How often a stream's engineer mends what a merge broke. */
export const MAX_MERGE_FIXES = 2;
/** How often a stream's conflicts are settled, and how often one of them is asked for. */
export const MAX_CONFLICTS = 2;
export const MAX_SETTLINGS = 2;
