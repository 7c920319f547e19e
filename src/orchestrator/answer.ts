import type { Session } from "../engine/port.ts";
import type { Config } from "../home/config.ts";
import type { Emit } from "../protocol/events.ts";
import type { Failure, Message } from "../protocol/messages.ts";
import type { TurnEvent, TurnRequest, TurnResult } from "../protocol/turns.ts";
import { noUsage, type Spender, type Spending } from "../protocol/usage.ts";
import type { Attachments } from "../store/attachments.ts";
import type { Contexts } from "../store/contexts.ts";
import type { Messages, Work } from "../store/messages.ts";
import type { Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import { describeAttachments } from "./attached.ts";
import type { Conversations } from "./conversations.ts";
import type { ChosenModel, ModelForMessage } from "./model-for-message.ts";
import { promptOf } from "./prompt.ts";
import type { Steering } from "./steering.ts";

export interface AnswerDeps {
  store: Store;
  messages: Messages;
  sessions: SessionRows;
  spending: Spending;
  conversations: Conversations;
  steering: Pick<Steering, "open">;
  contexts: Pick<Contexts, "set">;
  modelFor: ModelForMessage;
  attachments: Pick<Attachments, "find" | "read" | "pathOf">;
  /** Why a conversation cannot work in its folder now; undefined if it can, or has none. */
  folderTrouble: (conversation: string) => string | undefined;
  config: () => Config;
  emit: Emit;
  /** Publishes an event to current listeners without storing it. */
  announce: Emit;
}

/** How a message's turn ended, or why it did not start, and why another than the default model answered. */
export type Answered = Omit<TurnResult, "error"> & { error?: Failure; reason?: string | undefined };

/** Answers one message with its conversation's session, or continues a turn that was interrupted by a restart. */
export function createAnswers(deps: AnswerDeps) {
  const { store, messages, sessions, spending, conversations, steering, contexts, modelFor, folderTrouble, config } = deps;
  const { attachments, emit, announce } = deps;

  /** The commit need not be on disk yet: it is when the runtime has accepted the prompt, and so before any effect. */
  function begin(
    { message, begun }: Work,
    chosen: ChosenModel | undefined,
  ): { session: Session; interrupted: TurnRequest["interrupted"] } {
    const work = () => {
      const session =
        (begun?.sessionId ? conversations.byId(begun.sessionId, chosen?.model) : undefined) ??
        conversations.current(message.conversation, chosen?.model);
      const previousPromptId = sessions.find(session.id)?.lastPromptId ?? undefined;
      messages.start(message.id, session.id);
      emit({
        type: "message.started",
        conversation: message.conversation,
        data: { id: message.id, conversation: message.conversation, ...chosen },
      });
      const isSame = begun?.sessionId === session.id;
      return { session, interrupted: isSame ? { promptId: begun?.promptId ?? undefined, previousPromptId } : undefined };
    };
    return store.soft(work);
  }

  function publish(event: TurnEvent, message: Message): void {
    const { id, conversation } = message;
    if (event.kind === "thought") announce({ type: "message.thought", conversation, data: { id, text: event.text } });
    else if (event.kind === "context") contexts.set(conversation, event.use);
    else if (event.kind === "usage") spending.record(spenderOf(message), event.call);
    else if (event.kind === "retry") {
      const { kind: _kind, ...retry } = event;
      emit({ type: "message.retried", conversation, data: { id, ...retry } });
    } else if (event.kind === "tool") emit({ type: "message.tool", conversation, data: { id, ...toolNews(event) } });
    else if (event.kind !== "notice") {
      const data = event.kind === "delta" ? { id, text: event.text } : { id, text: "", restarted: true };
      emit({ type: "message.delta", conversation, data });
    }
  }

  return async (work: Work, signal: AbortSignal): Promise<Answered> => {
    const { message } = work;
    const { id, attempts } = message;
    // In any other folder a relative path would mean another file.
    const trouble = folderTrouble(message.conversation);
    if (trouble !== undefined) return cannotBegin({ code: "project_missing", message: trouble });
    const chosen = await modelFor(message);
    const { session, interrupted } = begin(work, chosen);
    const { turnSilenceMs, turnCapMs } = config();
    const attached = describeAttachments(message, attachments);
    const result = await session.run({
      owner: id,
      prompt: promptOf(message) + attached.text,
      pictures: attached.pictures,
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
      onEvent: (event) => publish(event, message),
      beforeCall: (signal, flush) => spending.permit(spenderOf(message), { signal, flush, life: attempts + 1 }),
    });
    return { ...result, reason: chosen?.reason };
  };
}
export type Answer = ReturnType<typeof createAnswers>;

function cannotBegin(error: Failure): Answered {
  return { outcome: "failed", text: "", error, usage: noUsage(), tools: [], served: [] };
}

function toolNews({ kind: _kind, ...news }: Extract<TurnEvent, { kind: "tool" }>) {
  return news;
}

function spenderOf({ id, conversation, source }: Message): Spender {
  return { owner: id, actor: "orchestrator", agent: "orchestrator", conversation, source: source.channel };
}
