import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import type { Client } from "../client/client.ts";
import { describeStatus } from "../client/status.ts";
import { messageOf } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import type { Status, Stopped } from "../protocol/api.ts";
import { shownFailure } from "../protocol/messages.ts";
import { askInChat, decideApproval, waitingApprovals } from "./approvals.ts";

export interface ChatDeps {
  client: Client;
  conversation: string;
  input: Readable;
  output: Writable;
  colour: boolean;
}

const HELP = `  /stop        end everything that runs     /status     what IO is doing
  /approvals   what waits for you           /allow <id> let it be done
  /deny <id>   refuse it; more words are a note to the model
  /help        this                         /exit       leave (IO goes on)`;

/** A plain chat, a line at a time. Ctrl-C stops an answer, or leaves when there is none. */
export async function chat({ client, conversation, input, output, colour }: ChatDeps): Promise<void> {
  const dim = (text: string) => (colour ? `\x1b[2m${text}\x1b[0m` : text);
  const say = (text: string) => void output.write(terminalSafe(text));
  const lines = createInterface({ input, output, prompt: colour ? "\x1b[1m›\x1b[0m " : "> " });
  let isOpen = true;
  lines.once("close", () => {
    isOpen = false;
  });
  /** A prompt after the person has left would hold on to the terminal for ever. */
  const prompt = () => {
    if (isOpen) lines.prompt(true);
  };
  let current: AbortController | undefined;
  let answering: Promise<void> = Promise.resolve();
  lines.on("SIGINT", () => {
    if (current) current.abort();
    else lines.close();
  });

  async function answer(text: string): Promise<void> {
    current = new AbortController();
    const abort = current;
    let id: string | undefined;
    let column = "";
    try {
      const message = await client.ask(
        { text, conversation, source: "tui" },
        {
          onId: (given) => {
            id = given;
          },
          onDelta: (delta) => {
            column += delta;
            say(delta);
          },
          onTool: (tool, state) => {
            if (state === "started") output.write(dim(`${column && !column.endsWith("\n") ? "\n" : ""}· ${tool}\n`));
          },
          signal: abort.signal,
          wait: "for ever",
        },
      );
      if (!column && message.reply) say(message.reply);
      const failure = shownFailure(message);
      if (failure) say(`${column || message.reply ? "\n" : ""}${failure}`);
      output.write("\n\n");
    } catch (error) {
      if (!abort.signal.aborted) throw error;
      if (id)
        await client
          .request("POST", `/api/messages/${id}/cancel`)
          .catch((late: unknown) => output.write(dim(`${messageOf(late)}\n`)));
      output.write(dim("\nstopped\n\n"));
    } finally {
      current = undefined;
    }
  }

  async function command(text: string): Promise<boolean> {
    const [name = "", ...args] = text.split(/\s+/);
    if (name === "/exit" || name === "/quit") return false;
    if (name === "/stop") {
      const { messages, tasks, runs } = await client.request<Stopped>("POST", "/api/stop");
      output.write(`stopped: ${messages} messages, ${tasks} tasks, ${runs} runs\n`);
    } else if (name === "/approvals") say(await waitingApprovals(client));
    else if (name === "/allow") output.write(dim(await decideApproval(client, "allow", args)));
    else if (name === "/deny") output.write(dim(await decideApproval(client, "deny", args)));
    else if (name === "/status") say(`${describeStatus(await client.request<Status>("GET", "/api/status"), client.url)}\n`);
    else output.write(`${dim(HELP)}\n`);
    return true;
  }

  const note = (text: string) => {
    output.write(`\r${dim(`· ${text}`)}\n`);
    if (!current) prompt();
  };

  /** What comes back from the background is shown as soon as nobody is being answered, however long the daemon was away. */
  async function hearBackground(signal: AbortSignal): Promise<void> {
    const news = client.events({
      conversation,
      signal,
      wait: "for ever",
      onLost: () => note("the daemon does not answer; waiting for it (io start starts it again)"),
      onBack: () => note("the daemon is back"),
    });
    for await (const event of news) {
      if (event.type === "approval.asked") {
        say(`\n${askInChat(event.data)}\n`);
        if (!current) prompt();
      }
      if (event.type !== "message.finished" || event.data.source.channel !== "background") continue;
      const message = event.data;
      const { about } = event.data.source;
      // A question that comes meanwhile is shown at once: the answer may be waiting for it.
      void answering.then(() => {
        output.write(`\r${dim(`· from the background (${about})`)}\n`);
        say(`${shownFailure(message) ?? message.reply ?? ""}\n\n`);
        prompt();
      });
    }
  }

  const leaving = new AbortController();
  const hearing = hearBackground(leaving.signal).catch((error: unknown) => output.write(dim(`${messageOf(error)}\n`)));
  const trouble = (error: unknown) => say(`${messageOf(error)}\n`);
  /** One message after another; commands do not wait for them. */
  const inTurn = (text: string): Promise<void> =>
    answering
      .then(() => answer(text))
      .catch(trouble)
      .finally(prompt);
  prompt();
  for await (const line of lines) {
    const text = line.trim();
    if (text !== "" && !text.startsWith("/")) {
      answering = inTurn(text);
      continue;
    }
    try {
      if (text !== "" && !(await command(text))) break;
    } catch (error) {
      trouble(error);
    }
    prompt();
  }
  await answering;
  lines.close();
  leaving.abort();
  await hearing;
}
