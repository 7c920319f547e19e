import type { Task } from "../../../src/protocol/squads.ts";
import type { LineComment } from "../diff/DiffView.vue";

/** The text of a new task that asks for the changes in line comments on another task's result. */
export function followUp({ id, description }: Pick<Task, "id" | "description">, comments: readonly LineComment[]): string {
  const each = comments.map(({ file, line, code, words }) => `${file}, line ${line}:\n    ${code.trim()}\n${words.trim()}`);
  return [`Meet these comments on what task ${id} changed.`, ...each, `The task was:\n${description}`].join("\n\n");
}
