import { createServer, type Socket } from "node:net";
import type { Channel } from "../../src/channels/channel.ts";
import type { Inbox } from "../../src/orchestrator/inbox.ts";
import { formatApproval } from "../../src/protocol/approval-text.ts";
import { type Message, shownFailure } from "../../src/protocol/messages.ts";

export interface PocketDeps {
  inbox: Pick<Inbox, "submit">;
  port: number;
  /** Required with every line that a person sends. */
  password: string;
}

const ANSWERS = { allow: "/allow", deny: "/deny" };
const textOf = (message: Message) => shownFailure(message) ?? message.reply ?? "";

/** The smallest possible channel, for one person. Each message is a line of JSON, and so is each reply. */
export function createPocket({ inbox, port, password }: PocketDeps): Channel {
  let person: Socket | undefined;
  const server = createServer((socket) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        hear(socket, text.slice(0, end));
        text = text.slice(end + 1);
      }
    });
    socket.on("close", () => {
      if (person === socket) person = undefined;
    });
    // A broken connection counts as closed.
    socket.on("error", () => socket.destroy());
  });

  function hear(socket: Socket, line: string): void {
    const { say, key, ...said } = JSON.parse(line) as { password: string; say?: string; key: string };
    if (said.password !== password) return void socket.destroy();
    person = socket;
    if (say !== undefined)
      inbox.submit({
        text: say,
        conversation: "main",
        source: { channel: "telegram", chatId: 1 },
        idempotencyKey: `pocket:${key}`,
      });
    socket.write(`${JSON.stringify({ took: key })}\n`);
  }

  return {
    name: "pocket",
    carries: ({ channel }) => channel === "telegram",
    start: () => new Promise((ready) => server.listen(port, "127.0.0.1", ready)),
    deliver: (what) =>
      new Promise((done, failed) => {
        if (!person) return failed(new Error("nobody is there"));
        const reply =
          "news" in what ? what.news : "approval" in what ? formatApproval(what.approval, ANSWERS) : textOf(what.message);
        person.write(`${JSON.stringify({ reply })}\n`, (error) => (error ? failed(error) : done("delivered")));
      }),
    close: () =>
      new Promise((closed) => {
        person?.destroy();
        server.close(() => closed());
      }),
  };
}
