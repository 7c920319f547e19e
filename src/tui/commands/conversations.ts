import type { Client } from "../../client/client.ts";
import { openConversation } from "../../client/open-conversation.ts";
import { UserError } from "../../lib/errors.ts";
import type { ConversationList } from "../../protocol/conversations.ts";
import { type Block, plainBlock } from "../transcript/blocks.ts";
import { brief, columns, time } from "./command.ts";

export interface ConversationsDeps {
  conversation: () => string;
  say: (block: Block) => void;
  goTo: (name: string) => void;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Commands that switch between conversations. */
export class Conversations {
  readonly #deps: ConversationsDeps;

  constructor(deps: ConversationsDeps) {
    this.#deps = deps;
  }

  /** Starts a conversation in the same project as the current one. */
  async begin(client: Client, name = `chat-${new Date().toISOString().slice(0, 19).replace(/\D/g, "")}`): Promise<void> {
    if (!NAME.test(name)) throw new UserError(wrongName(name));
    const { goTo, conversation } = this.#deps;
    const { folder } = await openConversation(client, { name: conversation() });
    if (folder !== null) await openConversation(client, { name, folder });
    goTo(name);
  }

  async goOrList(client: Client, name: string | undefined): Promise<void> {
    const { goTo, say, conversation } = this.#deps;
    if (name !== undefined && !NAME.test(name)) throw new UserError(wrongName(name));
    if (name !== undefined) return goTo(name);
    const { items } = await client.request<ConversationList>("GET", "/api/conversations");
    const rows = items.map((each) => [
      each.name === conversation() ? "›" : " ",
      each.name,
      `${each.messages} ${each.messages === 1 ? "message" : "messages"}`,
      each.lastMessageAt === null ? "" : time(each.lastMessageAt),
      brief(each.title ?? "", 50),
    ]);
    say(plainBlock(columns(rows) || "Nothing was said yet."));
  }
}

function wrongName(name: string): string {
  return `"${name}" cannot be a conversation's name: 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit.`;
}
