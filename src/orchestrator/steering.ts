import type { Emit } from "../protocol/events.ts";
import type { Message } from "../protocol/messages.ts";
import type { Steering as TurnSteering } from "../protocol/turns.ts";
import type { Messages } from "../store/messages.ts";
import type { Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { SteerRows } from "../store/steers.ts";

export interface SteeringDeps {
  store: Store;
  messages: Messages;
  rows: SteerRows;
  sessions: SessionRows;
  emit: Emit;
}

/** Lets people say something into a turn that runs. */
export interface Steering {
  /** On disk when this returns; false when the message does not run any more, or not yet. */
  say(id: string, text: string): boolean;
  /** What the engine hears of it, for a turn that begins or is taken up again. */
  open(message: Message, sessionId: string): TurnSteering;
  /** The message is finished. */
  forget(id: string): void;
}

interface Turn {
  isOpen: boolean;
  listeners: Set<() => void>;
}

export function createSteering({ store, messages, rows, sessions, emit }: SteeringDeps): Steering {
  const turns = new Map<string, Turn>();
  return {
    say(id, text) {
      const message = messages.find(id);
      const turn = turns.get(id);
      // One that an earlier life began is not taken up yet and will hear it then.
      if (message?.status !== "running" || turn?.isOpen === false) return false;
      store.transaction(() => {
        rows.add(id, text);
        emit({ type: "message.steered", conversation: message.conversation, data: { id, text } });
      });
      for (const listener of turn?.listeners ?? []) listener();
      return true;
    },
    open({ id, source }, sessionId) {
      const turn: Turn = { isOpen: true, listeners: new Set() };
      turns.set(id, turn);
      return {
        said: () => rows.of(id).map((row) => ({ ...row, text: `[via ${source.channel}] ${row.text}` })),
        onMore(listener) {
          turn.listeners.add(listener);
          return () => turn.listeners.delete(listener);
        },
        accepted: (seq, promptId) =>
          store.transaction(() => {
            rows.accepted(seq, promptId);
            sessions.accepted(sessionId, promptId);
          }),
        close() {
          turn.isOpen = false;
        },
      };
    },
    forget: (id) => void turns.delete(id),
  };
}
