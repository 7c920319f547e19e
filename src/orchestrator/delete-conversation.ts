import { setImmediate } from "node:timers/promises";
import type { Engine } from "../engine/port.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { DeletedConversation } from "../protocol/conversations.ts";
import type { Emit } from "../protocol/events.ts";
import type { Attachments } from "../store/attachments.ts";
import type { ConversationRemoval } from "../store/conversation-removal.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { ConversationSettings } from "./conversation-settings.ts";
import { ownerOf } from "./conversations.ts";
import type { Inbox } from "./inbox.ts";

export interface DeleteConversationDeps {
  conversations: Pick<ConversationSettings, "get">;
  removal: ConversationRemoval;
  attachments: Pick<Attachments, "ofConversation">;
  sessions: SessionRows;
  engine: Pick<Engine, "deleteSession">;
  inbox: Pick<Inbox, "clear">;
  emit: Emit;
  log: Log;
}

/**
 * Cancels what waits or runs in a conversation, then deletes its messages, settings and sessions. Tasks and runs that it started
 * continue, and its costs stay counted.
 */
export function createDeleteConversation(deps: DeleteConversationDeps) {
  const { conversations, removal, attachments, sessions, engine, inbox, emit, log } = deps;

  async function deleteSessions(owner: string): Promise<void> {
    for (const id of sessions.ofOwner(owner)) {
      try {
        await engine.deleteSession(id);
        sessions.forget(id);
      } catch (error) {
        sessions.disown(id);
        log.warn("a session is still on disk; it is deleted with the retired ones", { session: id, error: messageOf(error) });
      }
    }
  }

  return async (name: string): Promise<DeletedConversation> => {
    conversations.get(name);
    return inbox.clear(name, async (cancelled) => {
      const files = attachments.ofConversation(name);
      const steps = removal.begin(name);
      await deleteSessions(ownerOf(name));
      let messages = 0;
      for (const removed of steps) {
        messages += removed;
        await setImmediate();
      }
      files.removeUntold();
      emit({ type: "conversation.deleted", data: { name } });
      return { name, messages, cancelled };
    });
  };
}
export type DeleteConversation = ReturnType<typeof createDeleteConversation>;
