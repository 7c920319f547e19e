import type { Client } from "../../client/client.ts";
import { UserError } from "../../lib/errors.ts";
import { type Block, plainBlock, troubleBlock } from "../transcript/blocks.ts";
import { columns, time } from "./command.ts";

export interface ConversationsDeps {
  conversation: () => string;
  say: (block: Block) => void;
  goTo: (name: string) => void;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Goes from one conversation to another. */
export class Conversations {
  readonly #deps: ConversationsDeps;

  constructor(deps: ConversationsDeps) {
    this.#deps = deps;
  }

  begin(name = `chat-${new Date().toISOString().slice(0, 19).replace(/\D/g, "")}`): void {
    const { goTo, say } = this.#deps;
    if (NAME.test(name)) goTo(name);
    else say(troubleBlock(wrongName(name)));
  }

  async goOrList(client: Client, name: string | undefined): Promise<void> {
    const { goTo, say, conversation } = this.#deps;
    if (name !== undefined && !NAME.test(name)) throw new UserError(wrongName(name));
    if (name !== undefined) return goTo(name);
    const { items } = await client.request<{ items: { name: string; messages: number; lastAt: string }[] }>(
      "GET",
      "/api/conversations",
    );
    const rows = items.map((each) => [
      each.name === conversation() ? "›" : " ",
      each.name,
      `${each.messages} messages`,
      time(each.lastAt),
    ]);
    say(plainBlock(columns(rows) || "Nothing was said yet."));
  }
}

function wrongName(name: string): string {
  return `"${name}" cannot be a conversation's name: 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit.`;
}
