import type { Emit } from "../protocol/events.ts";
import type { Message } from "../protocol/messages.ts";
import type { Steering as TurnSteering } from "../protocol/turns.ts";
import type { Messages } from "../store/messages.ts";
import type { Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { SteerRows } from "../store/steers.ts";
import { promptOf } from "./prompt.ts";

export interface SteeringDeps {
  store: Store;
  messages: Messages;
  rows: SteerRows;
  sessions: SessionRows;
  emit: Emit;
}

/** Lets people add text to a running turn. */
export interface Steering {
  /** On disk when this returns; false if the message is not running. */
  say(id: string, text: string): boolean;
  /** The engine's view of the added texts, for a turn that starts or is resumed. */
  open(message: Message, sessionId: string): TurnSteering;
  /** Call when the message has ended. */
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
      // A turn that was running before a restart gets the text when it is resumed.
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
        said: () => rows.of(id).map((row) => ({ ...row, text: promptOf({ source, text: row.text }) })),
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
