import { onScopeDispose, ref, shallowRef, triggerRef } from "vue";
import type { Message, MessageProgress } from "../../../src/protocol/messages.ts";
import { useIo } from "../io.ts";
import { at, get, post } from "../lib/api.ts";
import { createConversation } from "../live/conversation.ts";

interface MessagePage {
  items: Message[];
  next?: string;
}

export const messagesPath = (name: string, before?: string): string =>
  `/api/messages?limit=50&conversation=${encodeURIComponent(name)}${before ? `&before=${before}` : ""}`;

/** The state of one conversation, kept up to date by events. */
export function useConversation(name: string) {
  const io = useIo();
  const state = shallowRef(createConversation(name));
  const next = ref<string>();
  const loaded = ref(false);
  const problem = ref<unknown>();
  let dirty = false;
  let gone = false;
  onScopeDispose(() => {
    gone = true;
  });

  /** Events that arrive in a burst cause one redraw. Microtasks also run in hidden tabs, where animation frames stop. */
  const changed = () => {
    if (dirty) return;
    dirty = true;
    queueMicrotask(() => {
      dirty = false;
      triggerRef(state);
    });
  };
  const catchUp = async (items: readonly Message[]) => {
    for (const { id } of items.filter(({ status }) => status === "running")) {
      if (state.value.find(id)?.whole) continue;
      state.value.catchUp(await get<MessageProgress>(`${at("messages", id)}/progress`));
    }
  };
  const load = async () => {
    try {
      const first = await io.first<MessagePage>(messagesPath(name));
      if (gone) return;
      state.value.load(first.items);
      if (!loaded.value) next.value = first.next;
      await catchUp(first.items);
      loaded.value = true;
      problem.value = undefined;
    } catch (error) {
      problem.value = error;
    }
    changed();
  };
  io.on(
    [
      "message.queued",
      "message.started",
      "message.delta",
      "message.tool",
      "message.retried",
      "message.steered",
      "message.finished",
    ],
    (event) => {
      if (state.value.apply(event)) changed();
      // A reply counts as seen if the page is visible; otherwise when the user returns to it.
      if (event.type === "message.finished" && event.data.conversation === name) seen();
    },
  );
  io.on(["conversation.deleted"], ({ data }) => {
    if (data.name !== name) return;
    state.value = createConversation(name);
    next.value = undefined;
  });
  const seen = () => {
    // If this fails, the messages count as unread until the conversation is opened again.
    if (document.visibilityState === "visible") void post(`${at("conversations", name)}/seen`).catch(() => undefined);
  };
  document.addEventListener("visibilitychange", seen);
  onScopeDispose(() => document.removeEventListener("visibilitychange", seen));
  io.onReturn(() => void load());
  void load();

  return {
    state,
    loaded,
    problem,
    next,
    reload: load,
    async older(): Promise<void> {
      if (next.value === undefined) return;
      const more = await get<MessagePage>(messagesPath(name, next.value));
      state.value.load(more.items);
      next.value = more.next;
      changed();
    },
  };
}
