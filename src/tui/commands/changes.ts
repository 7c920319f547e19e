import { UserError } from "../../lib/errors.ts";
import { changesAt, formatDifference, formatUndo } from "../../protocol/change-text.ts";
import type { ChangeSummary, Difference, UndoResult } from "../../protocol/changes.ts";
import type { Command, CommandDeps } from "./command.ts";

/** `io diff` shows more lines. */
const MOST_LINES = 300;

/** Commands that show file changes and undo them. */
export const changeCommands: readonly Command[] = [
  {
    name: "diff",
    takes: "[id]",
    help: "what the latest message, or the one named, changed in files",
    async run(deps) {
      const id = await idOf(deps);
      const diff = await deps.client.request<Difference>("GET", `${changesAt(id)}/diff`);
      return formatDifference(diff, { lines: MOST_LINES });
    },
  },
  {
    name: "undo",
    takes: "[id]",
    help: "brings those files back; once more does it again",
    async run(deps) {
      const id = await idOf(deps);
      return formatUndo(await deps.client.request<UndoResult>("POST", `${changesAt(id)}/undo`));
    },
  },
];

/** Returns the named message or task, or the conversation's latest one that changed a file. */
async function idOf({ client, conversation, args: [given] }: CommandDeps): Promise<string> {
  if (given !== undefined) return given;
  const query = `conversation=${encodeURIComponent(conversation)}&limit=1`;
  const { items } = await client.request<{ items: ChangeSummary[] }>("GET", `/api/changes?${query}`);
  const [latest] = items;
  if (!latest) throw new UserError("No change of a file is known in this conversation.");
  return latest.id;
}
