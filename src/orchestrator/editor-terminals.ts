import { newId } from "../lib/ids.ts";
import type { EditorTerminal, TerminalEnd, TerminalOrders, TerminalReport } from "../protocol/editor-terminal.ts";
import type { Emit } from "../protocol/events.ts";

export interface EditorTerminalsDeps {
  announce: Emit;
  /** Told of a conversation whose editor does not answer. */
  onGone: (conversation: string) => void;
  patienceMs?: number;
  silenceMs?: number;
  stopMs?: number;
}

/** How long an editor's process may take to accept a command. */
const PATIENCE_MS = 5_000;
/** A process that says nothing for this long is gone, and its command's outcome is unknown. */
const SILENCE_MS = 10_000;
/** How long a command that is to stop may take to do so. */
const STOP_MS = 5_000;

interface Running {
  conversation: string;
  report: (report: TerminalReport) => TerminalOrders;
}

/** Commands in the terminals of editors. Each is given to one process, once. */
export function createEditorTerminals({ announce, onGone, ...times }: EditorTerminalsDeps) {
  const { patienceMs = PATIENCE_MS, silenceMs = SILENCE_MS, stopMs = STOP_MS } = times;
  const running = new Map<string, Running>();

  function run(conversation: string, ...[command, call]: Parameters<EditorTerminal>): ReturnType<EditorTerminal> {
    const { message, callId, signal, onOutput } = call;
    if (signal.aborted) return Promise.resolve({ how: "unanswered" });
    const ask = newId("ask");
    return new Promise((done) => {
      let isTaken = false;
      let timer: NodeJS.Timeout;
      const finish = (end: TerminalEnd | { how: "unanswered" }) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        running.delete(ask);
        done(end);
      };
      const finishIn = (ms: number, end: TerminalEnd | { how: "unanswered" }) => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          onGone(conversation);
          finish(end);
        }, ms).unref();
      };
      const onAbort = () => {
        // A command that nobody has accepted is never run.
        if (!isTaken) finish({ how: "unanswered" });
        else finishIn(stopMs, { how: "lost", why: "the editor did not say that it stopped the command" });
      };
      const report = ({ printed, end }: TerminalReport): TerminalOrders => {
        const isFirst = !isTaken;
        isTaken = true;
        if (printed) onOutput?.(printed);
        if (end) finish(end);
        else if (!signal.aborted) finishIn(silenceMs, { how: "lost", why: "the editor did not answer any more" });
        return { stop: signal.aborted, ...(isFirst && { run: command }) };
      };
      running.set(ask, { conversation, report });
      signal.addEventListener("abort", onAbort, { once: true });
      finishIn(patienceMs, { how: "unanswered" });
      announce({ type: "editor.asked", conversation, data: { ask, terminal: { message, call: callId } } });
    });
  }

  return {
    run,
    /** Takes what an editor's process says of a command, and answers with what it is to do. */
    report(conversation: string, ask: string, report: TerminalReport): TerminalOrders {
      const command = running.get(ask);
      return command?.conversation === conversation ? command.report(report) : { stop: true };
    },
  };
}
export type EditorTerminals = ReturnType<typeof createEditorTerminals>;
