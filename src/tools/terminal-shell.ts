import { oneLine } from "../lib/quoted.ts";
import { captureOutput, type ExecResult, notStarted } from "../process/exec.ts";
import type { EditorTerminal, TerminalCommand } from "../protocol/editor-terminal.ts";
import { Refusal, type ToolContext, type ToolScope, UnknownOutcome } from "./tool.ts";

/** The editor's terminal for a command, if it is to run there. A background command stays where IO can stop it. */
export function terminalFor({ background }: Record<string, unknown>, { editorTerminal }: ToolScope): EditorTerminal | undefined {
  return background ? undefined : editorTerminal;
}

/** Runs a command in the terminal of the user's editor until it ends or is told to stop. */
export async function runInTerminal(
  terminal: EditorTerminal,
  command: TerminalCommand,
  { owner, callId = "", signal, onOutput }: ToolContext,
  { deadlineMs, maxOutput }: { deadlineMs: number; maxOutput: number },
): Promise<Pick<ExecResult, "code" | "ending" | "output">> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const stop = AbortSignal.any([signal, deadline]);
  const end = await terminal(command, { message: owner, callId, signal: stop, ...(onOutput && { onOutput }) });
  switch (end.how) {
    case "unanswered":
      throw new Refusal(UNANSWERED);
    case "not-started":
      return notStarted(oneLine(end.why, 300));
    case "lost":
      throw new UnknownOutcome(
        `The command began in the terminal of the user's editor, and nobody knows how it ended: ${oneLine(end.why, 300)}. A part of it may have been done: look before you do it again.`,
      );
    case "exited": {
      const captured = captureOutput(maxOutput);
      captured.out(Buffer.from(`${end.isCut ? "(the beginning is missing)\n" : ""}${end.output.replaceAll("\r\n", "\n")}`));
      return captured.result(end.code, signal.aborted ? "aborted" : deadline.aborted ? "deadline" : "exited");
    }
  }
}

const UNANSWERED =
  "shell was not run: it was to run in the terminal of the user's editor, which did not answer. The next command runs in the sandbox, until the editor is back.";
