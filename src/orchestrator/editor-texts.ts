import { newId } from "../lib/ids.ts";
import type { EditorTerminal } from "../protocol/editor-terminal.ts";
import type { Emit } from "../protocol/events.ts";
import type { FormAnswer, PersonForm } from "../protocol/person-form.ts";
import { createEditorTerminals } from "./editor-terminals.ts";

export interface EditorTextsDeps {
  /** Publishes an event to current listeners without storing it. */
  announce: Emit;
  patienceMs?: number;
}

/** An editor that has not answered within this time counts as gone until it reconnects. */
const PATIENCE_MS = 5_000;

/** How long a form waits for a person. */
const FORM_MS = 1_200_000;

/** What an editor answers: its text of a file, if it has one, or what became of a form. */
export type EditorAnswer = { text: string | undefined } | FormAnswer;

/** What an editor can do for the daemon. */
export interface Offers {
  texts: boolean;
  forms: boolean;
  terminals: boolean;
}

interface Question {
  conversation: string;
  answer: (answer: EditorAnswer) => void;
}

/** The unsaved texts and the terminals of editors and the people at them, by the conversations that they have open. */
export function createEditorTexts({ announce, patienceMs = PATIENCE_MS }: EditorTextsDeps) {
  const editors = new Map<string, Offers>();
  const questions = new Map<string, Question>();
  const terminals = createEditorTerminals({ announce, onGone: (conversation) => editors.delete(conversation) });

  return {
    /** An editor has opened the conversation and can be asked from now on. */
    opened: (conversation: string, offers: Offers): void => void editors.set(conversation, offers),
    closed: (conversation: string): void => void editors.delete(conversation),
    /** Takes an editor's answer; false if nobody waits for it any more. */
    answer(conversation: string, ask: string, answer: EditorAnswer): boolean {
      const question = questions.get(ask);
      if (question?.conversation !== conversation) return false;
      question.answer(answer);
      return true;
    },
    /** Returns a function that asks a conversation's editor for the text of a file; undefined if there is no editor. */
    readerFor(conversation: string): ((path: string) => Promise<string | undefined>) | undefined {
      if (!editors.get(conversation)?.texts) return undefined;
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
          questions.set(ask, { conversation, answer: (given) => answer("text" in given ? given.text : undefined) });
          announce({ type: "editor.asked", conversation, data: { ask, path } });
        });
      };
    },
    /** Returns a function that runs a command in the terminal of a conversation's editor; undefined if no editor offers one. */
    terminalFor(conversation: string): EditorTerminal | undefined {
      if (!editors.get(conversation)?.terminals) return undefined;
      return (command, call) => terminals.run(conversation, command, call);
    },
    reportTerminal: terminals.report,
    /** Returns a function that has the person at a conversation's editor fill in a form; undefined if no editor shows forms. */
    formsFor(conversation: string): ((form: PersonForm, signal: AbortSignal) => Promise<FormAnswer>) | undefined {
      if (!editors.get(conversation)?.forms) return undefined;
      return (form, signal) =>
        new Promise((done) => {
          const ask = newId("ask");
          const ends = AbortSignal.any([signal, AbortSignal.timeout(FORM_MS)]);
          const answer = (given: FormAnswer) => {
            ends.removeEventListener("abort", onEnd);
            questions.delete(ask);
            done(given);
          };
          const onEnd = () => answer({ action: "cancel" });
          ends.addEventListener("abort", onEnd);
          questions.set(ask, { conversation, answer: (given) => answer("action" in given ? given : { action: "cancel" }) });
          announce({ type: "editor.asked", conversation, data: { ask, form } });
        });
    },
  };
}
export type EditorTexts = ReturnType<typeof createEditorTexts>;
