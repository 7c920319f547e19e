import { INPUT_BUDGET, type InputBudget, jsonTrouble } from "./input-budget.ts";
import { offThread } from "./off-thread.ts";

/** A foreign JSON document, or why it was refused. */
export type JsonRead = { value: unknown } | { trouble: string };

/** How many characters are parsed on the main thread: a few milliseconds' worth. */
const SMALL = 1_000_000;
const DEADLINE_MS = 10_000;

/** Checks the budget of foreign JSON, then parses it; large texts in a worker thread. */
export async function readJsonInput(text: string, budget: InputBudget = INPUT_BUDGET): Promise<JsonRead> {
  if (text.length <= SMALL) return parseJson(text, budget);
  const read = await offThread<JsonRead>("lib/json-worker.js", { text, budget }, { deadlineMs: DEADLINE_MS, memoryMb: 256 });
  return read ?? { trouble: "takes too long to read" };
}

export function parseJson(text: string, budget: InputBudget = INPUT_BUDGET): JsonRead {
  const trouble = jsonTrouble(text, budget);
  if (trouble !== undefined) return { trouble };
  try {
    return { value: JSON.parse(text) };
  } catch {
    // The sender knows the text; an offset would not help.
    return { trouble: "is not valid JSON" };
  }
}
