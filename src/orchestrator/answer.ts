import type { Session } from "../engine/port.ts";
import type { Config } from "../lib/config.ts";
import type { Emit } from "../protocol/events.ts";
import type { Message } from "../protocol/messages.ts";
import type { TurnEvent, TurnRequest, TurnResult } from "../protocol/turns.ts";
import type { Spender, Spending } from "../protocol/usage.ts";
import type { Contexts } from "../store/contexts.ts";
import type { Messages, Work } from "../store/messages.ts";
import type { Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { Conversations } from "./conversations.ts";
import type { Steering } from "./steering.ts";

export interface AnswerDeps {
  store: Store;
  messages: Messages;
  sessions: SessionRows;
  spending: Spending;
  conversations: Conversations;
  steering: Pick<Steering, "open">;
  contexts: Pick<Contexts, "set">;
  config: () => Config;
  emit: Emit;
}

/** Asks a conversation's session for the answer to one message, or goes on with a turn that an earlier life began. */
export function createAnswers(deps: AnswerDeps) {
  const { store, messages, sessions, spending, conversations, steering, contexts, config, emit } = deps;

  /** Not waited for on the disk: it is there when the runtime has accepted the prompt, and so before any effect. */
  function begin({ message, begun }: Work): { session: Session; interrupted: TurnRequest["interrupted"] } {
    const work = () => {
      const session =
        (begun?.sessionId ? conversations.byId(begun.sessionId) : undefined) ?? conversations.current(message.conversation);
      const previousPromptId = sessions.find(session.id)?.lastPromptId ?? undefined;
      messages.start(message.id, session.id);
      const isSame = begun?.sessionId === session.id;
      return { session, interrupted: isSame ? { promptId: begun?.promptId ?? undefined, previousPromptId } : undefined };
    };
    return store.soft(() => store.transaction(work));
  }

  function tell(event: TurnEvent, message: Message): void {
    const { id, conversation } = message;
    if (event.kind === "context") contexts.set(conversation, event.use);
    else if (event.kind === "usage") spending.record(spenderOf(message), event.call);
    else if (event.kind === "tool")
      emit({ type: "message.tool", conversation, data: { id, tool: event.tool, state: event.state } });
    else {
      const data = event.kind === "delta" ? { id, text: event.text } : { id, text: "", restarted: true };
      emit({ type: "message.delta", conversation, data });
    }
  }

  return (work: Work, signal: AbortSignal): Promise<TurnResult> => {
    const { message } = work;
    const { id, conversation, attempts } = message;
    const { session, interrupted } = begin(work);
    emit({ type: "message.started", conversation, data: { id, conversation } });
    const { turnSilenceMs, turnCapMs } = config();
    return session.run({
      owner: id,
      prompt: promptOf(message),
      attempt: attempts + 1,
      signal,
      silenceMs: turnSilenceMs,
      capMs: turnCapMs,
      steering: steering.open(message, session.id),
      ...(interrupted && { interrupted }),
      onAccepted: (promptId) =>
        store.transaction(() => {
          messages.accepted(id, promptId);
          sessions.accepted(session.id, promptId);
        }),
      onEvent: (event) => tell(event, message),
      beforeCall: (signal) => spending.permit(spenderOf(message), { signal, life: attempts + 1 }),
    });
  };
}
export type Answer = ReturnType<typeof createAnswers>;

function spenderOf({ id, conversation, source }: Message): Spender {
  return { owner: id, actor: "orchestrator", agent: "orchestrator", conversation, source: source.channel };
}

/**
 * What the model reads: where the message came from, then its text. The same for every life of a message. A line of the
 * text that looks like where a message came from is spelled so that it cannot pass for it.
 */
export function promptOf({ source, text }: Pick<Message, "source" | "text">): string {
  return `[via ${source.channel}] ${text.replace(FORGED, "$1$2\\[")}`;
}

const FORGED = /(^|[\n\r\v\f\u0085\u2028\u2029])([^\S\n\r\v\f\u2028\u2029]*)\[(?=\s*via\b)/gi;
