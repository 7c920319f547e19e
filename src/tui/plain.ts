import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Client } from "../client/client.ts";
import { expandCommand, type OwnCommand } from "../home/own-command.ts";
import { messageOf } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { formatApproval } from "../protocol/approval-text.ts";
import { shownFailure } from "../protocol/messages.ts";
import { isFromElsewhere } from "../protocol/news.ts";
import { formatDiskState, formatRetry } from "../protocol/shown-state.ts";
import { ASKED, commandIn, helpText, isBuiltIn, needsScreen, unknownCommand } from "./commands/index.ts";
import { createToolNotes } from "./tool-notes.ts";

export interface PlainChatDeps {
  client: Client;
  conversation: string;
  input: Readable;
  output: Writable;
  /** Whether a person types the lines; otherwise they are only read, without a prompt. */
  isTyped: boolean;
  /** Prints progress and remarks, separate from the answers. */
  note: (text: string) => void;
}

/**
 * A chat in plain lines, for a terminal that can do no more, or for no terminal at all. Returns whether every message was
 * answered.
 */
export async function plainChat({ client, conversation, input, output, isTyped, note }: PlainChatDeps): Promise<boolean> {
  const say = (text: string) => void output.write(terminalSafe(text));
  const lines = createInterface({ input, terminal: false });
  const leaving = new AbortController();
  let isGood = true;
  let answering: Promise<void> = Promise.resolve();

  async function answer(text: string): Promise<void> {
    let said = "";
    try {
      const message = await client.ask(
        { text, conversation, source: "tui" },
        {
          onDelta: (delta) => {
            said += delta;
            say(delta);
          },
          onTool: createToolNotes(note),
          onRetry: (retry) => note(`! ${formatRetry(retry)}`),
          wait: "for ever",
        },
      );
      if (said === "" && message.reply) say(message.reply);
      say("\n");
      const failure = shownFailure(message);
      if (failure) {
        isGood = false;
        say(`${failure}\n`);
      }
    } catch (error) {
      isGood = false;
      note(messageOf(error));
    }
    prompt();
  }

  async function hear(signal: AbortSignal): Promise<void> {
    const onLost = () => note("· the daemon does not answer; waiting for it (io start starts it again)");
    const onBack = () => note("· the daemon is back");
    for await (const event of client.events({ conversation, signal, wait: "for ever", onLost, onBack })) {
      // Show a question at once: the answer may depend on it.
      if (event.type === "approval.asked") say(`\n${formatApproval(event.data, { allow: "/allow", deny: "/deny" })}\n`);
      if (event.type === "news.told" && isFromElsewhere(event.data, conversation)) note(`· ${event.data.text}`);
      if (event.type === "disk.changed") note(`! ${formatDiskState(event.data)}`);
      if (event.type !== "message.finished" || event.data.source.channel !== "background") continue;
      const { source, reply } = event.data;
      const text = shownFailure(event.data) ?? reply ?? "";
      void answering.then(() => say(`· from the background (${source.about})\n${text}\n`)).then(prompt);
    }
  }

  const ownCommands = async (): Promise<OwnCommand[]> =>
    (await client.request<{ items: OwnCommand[] }>("GET", `/api/conversations/${encodeURIComponent(conversation)}/commands`))
      .items;

  async function command(name: string, rest: string): Promise<void> {
    const known = ASKED.find((each) => each.name === name);
    const args = rest.split(/\s+/).filter(Boolean);
    try {
      if (known) return say(`${await known.run({ client, conversation, args, rest })}\n`);
      if (needsScreen(name)) return say(`/${name} takes a terminal. Here: io --conversation <name>, io conversation list\n`);
      const own = await ownCommands();
      const written = isBuiltIn(name) ? undefined : own.find((each) => each.name === name);
      if (written) answering = answering.then(() => answer(expandCommand(written, rest)));
      else say(`${name === "help" ? helpText(own, { isPlain: true }) : unknownCommand(name, own)}\n`);
    } catch (error) {
      say(`${messageOf(error)}\n`);
    }
  }

  const prompt = () => void (isTyped && output.write("> "));
  const hearing = hear(leaving.signal).catch((error: unknown) => note(messageOf(error)));
  prompt();
  for await (const line of lines) {
    const text = line.trim();
    const asked = commandIn(text);
    if (asked?.name === "quit" || asked?.name === "exit") break;
    if (asked) await command(asked.name, asked.rest);
    else if (text !== "") answering = answering.then(() => answer(text));
    if (asked || text === "") prompt();
  }
  await answering;
  lines.close();
  leaving.abort();
  await hearing;
  return isGood;
}
