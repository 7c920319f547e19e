import type { Command } from "commander";
import { ExitCode, UserError, usageError } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { isForAll } from "../protocol/approval-text.ts";
import type { Approval } from "../protocol/approvals.ts";
import { type Message, shownFailure } from "../protocol/messages.ts";
import { formatDiskState, formatRetry } from "../protocol/shown-state.ts";
import { createToolNotes } from "../tui/tool-notes.ts";
import { readInput } from "./input.ts";
import type { Shell } from "./output.ts";
import { createQuestionsHere } from "./questions-here.ts";

export function sendCommand(program: Command, shell: Shell): void {
  program
    .command("send")
    .description("say one thing to IO and print its answer")
    .argument("<text>", 'the message; "-" reads standard input')
    .option("--conversation <name>", "which conversation", "main")
    .option("--no-wait", "do not wait for the answer; print the message's id")
    .option("--json", "print one JSON document")
    .action(async (given: string, options: { conversation: string; wait: boolean; json?: boolean }) => {
      const text = given === "-" ? await readInput() : given;
      if (text.trim() === "") throw usageError("There is nothing to send: the text is empty.");
      const client = shell.client();
      const message = { text, conversation: options.conversation, source: "api" as const };
      if (!options.wait) {
        const queued = await client.request<{ id: string }>("POST", "/api/messages", message);
        return shell.print(queued, queued.id, options);
      }
      const streams = process.stdout.isTTY === true && !options.json;
      let streamed = false;
      let isInLine = false;
      const note = (text: string) => {
        shell.note(isInLine ? `\n${text}` : text);
        isInLine = false;
      };
      const interrupt = new AbortController();
      process.once("SIGINT", () => interrupt.abort());
      const questions = createQuestionsHere({
        isOurs: (approval) => holdsUp(approval, options.conversation),
        decide: (id, decision) => client.request("POST", `/api/approvals/${id}`, decision),
        note,
        input: process.stdin.isTTY && process.stderr.isTTY ? process.stdin : undefined,
      });
      const answer = await client
        .ask(message, {
          signal: interrupt.signal,
          onApproval: questions.update,
          onTool: createToolNotes(note),
          onRetry: (retry) => note(`! ${formatRetry(retry)}`),
          onDisk: (disk) => note(`! ${formatDiskState(disk)}`),
          ...(streams && {
            onDelta: (delta: string) => {
              streamed = true;
              isInLine = !delta.endsWith("\n");
              process.stdout.write(terminalSafe(delta));
            },
          }),
        })
        .finally(questions.close);
      show(answer, streamed, options, shell);
    });
}

/** A conversation answers its messages one after another, so a question of an earlier message blocks the later ones too. */
function holdsUp(approval: Approval, conversation: string): boolean {
  const isHere = approval.conversation === conversation;
  return isForAll(approval) || (isHere && (approval.owner.kind === "message" || approval.kind === "budget"));
}

function show(answer: Message, streamed: boolean, options: { json?: boolean }, shell: Shell): void {
  const failure = shownFailure(answer);
  if (options.json) {
    shell.print(answer, "", options);
    if (!failure) return;
    // The printed document is the message, which itself contains the failure.
    shell.note(failure);
    process.exitCode = ExitCode.failed;
    return;
  }
  if (streamed) process.stdout.write("\n");
  else if (answer.reply) shell.print(answer, answer.reply, options);
  if (failure) throw new UserError(failure, { exitCode: ExitCode.failed });
}
