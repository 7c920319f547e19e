import type { Command } from "commander";
import { ExitCode, UserError, usageError } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { type Message, shownFailure } from "../protocol/messages.ts";
import { readInput } from "./input.ts";
import type { Shell } from "./output.ts";

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
      const interrupt = new AbortController();
      process.once("SIGINT", () => interrupt.abort());
      const answer = await client.ask(message, {
        signal: interrupt.signal,
        ...(streams && {
          onDelta: (delta: string) => {
            streamed = true;
            process.stdout.write(terminalSafe(delta));
          },
        }),
      });
      show(answer, streamed, options, shell);
    });
}

function show(answer: Message, streamed: boolean, options: { json?: boolean }, shell: Shell): void {
  const failure = shownFailure(answer);
  if (options.json) {
    shell.print(answer, "", options);
    if (!failure) return;
    // The message is the one document, and says itself that it failed.
    shell.note(failure);
    process.exitCode = ExitCode.failed;
    return;
  }
  if (streamed) process.stdout.write("\n");
  else if (answer.reply) shell.print(answer, answer.reply, options);
  if (failure) throw new UserError(failure, { exitCode: ExitCode.failed });
}
