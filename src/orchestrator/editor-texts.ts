import { newId } from "../lib/ids.ts";
import type { Emit } from "../protocol/events.ts";

export interface EditorTextsDeps {
  /** Publishes an event to current listeners without storing it. */
  announce: Emit;
  patienceMs?: number;
}

/** An editor that has not answered within this time counts as gone until it reconnects. */
const PATIENCE_MS = 5_000;

interface Question {
  conversation: string;
  answer: (text: string | undefined) => void;
}

/** The unsaved texts of editors, by the conversations that they have open. */
export function createEditorTexts({ announce, patienceMs = PATIENCE_MS }: EditorTextsDeps) {
  const editors = new Set<string>();
  const questions = new Map<string, Question>();

  return {
    /** An editor has opened the conversation and can be asked from now on. */
    opened: (conversation: string): void => void editors.add(conversation),
    closed: (conversation: string): void => void editors.delete(conversation),
    /** Takes an editor's answer; false if nobody waits for it any more. */
    answer(conversation: string, ask: string, text: string | undefined): boolean {
      const question = questions.get(ask);
      if (question?.conversation !== conversation) return false;
      question.answer(text);
      return true;
    },
    /** Returns a function that asks a conversation's editor for the text of a file; undefined if there is no editor. */
    readerFor(conversation: string): ((path: string) => Promise<string | undefined>) | undefined {
      if (!editors.has(conversation)) return undefined;
      return (path) => {
        if (!editors.has(conversation)) return Promise.resolve(undefined);
        const ask = newId("ask");
        return new Promise((done) => {
          const answer = (text: string | undefined) => {
            clearTimeout(timer);
            questions.delete(ask);
            done(text);
          };
          const timer = setTimeout(() => {
            editors.delete(conversation);
            answer(undefined);
          }, patienceMs).unref();
          questions.set(ask, { conversation, answer });
          announce({ type: "editor.asked", conversation, data: { ask, path } });
        });
      };
    },
  };
}
export type EditorTexts = ReturnType<typeof createEditorTexts>;
