import { conflict, missing } from "../lib/errors.ts";
import { named, quoted } from "../lib/quoted.ts";
import type { ChangeSummary, Difference, UndoResult } from "../protocol/changes.ts";
import type { Squads } from "../squads/squads.ts";
import type { Messages } from "../store/messages.ts";
import type { Undo } from "../undo/undo.ts";

export interface ChangesDeps {
  undo: Pick<Undo, "knows" | "diff" | "undo" | "latest">;
  messages: Pick<Messages, "find">;
  squads: Pick<Squads, "task" | "diff">;
}

/** The file changes of messages and tasks, for every channel. */
export interface Changes {
  diff(id: string): Promise<Difference>;
  /** Restores files that nobody has changed since; a second undo redoes the changes. */
  undo(id: string): Promise<UndoResult>;
  /** Newest first, of one conversation or of all. */
  latest(conversation: string | undefined, most: number): Promise<ChangeSummary[]>;
}

const OPEN = ["queued", "running"];

export function createChanges({ undo, messages, squads }: ChangesDeps): Changes {
  const findMessage = (id: string) => {
    const message = messages.find(id);
    if (!message) throw missing(`There is no message with the id ${quoted(id, 100)}.`);
    return message;
  };
  const find = (id: string) => (id.startsWith("t_") ? squads.task(id) : findMessage(id));

  return {
    async diff(id) {
      const found = find(id);
      if (undo.knows(id) || !("evidence" in found)) return undo.diff(id);
      return { ...(await squads.diff(id)), notes: [], undone: false };
    },
    async undo(id) {
      const found = find(id);
      if (OPEN.includes(found.status))
        throw conflict(`${id} still ${found.status === "queued" ? "waits" : "runs"}. Wait for it or cancel it, then undo.`);
      const branch = "evidence" in found ? found.evidence?.branch : undefined;
      if (branch !== undefined && !undo.knows(id))
        throw conflict(
          `Nothing in your checkout was changed: the work of ${id} is on the branch ${named(branch)}. If you merged it, undo the merge with git; if not, git branch -D ${branch} deletes it.`,
        );
      return undo.undo(id);
    },
    latest: (conversation, most) => undo.latest(conversation, most),
  };
}
