import type { Api } from "grammy";
import type { TelegramPeople } from "../../store/telegram-people.ts";
import type { Access } from "./access.ts";
import { calling } from "./bot.ts";
import { placeOf } from "./chat.ts";
import { pieceOf, plainPieces } from "./format/answer.ts";
import type { StrangerUpdate } from "./incoming-update.ts";
import type { Teller } from "./teller.ts";
import { troubleOf } from "./trouble.ts";

export interface StrangersDeps {
  api: Api;
  access: Access;
  people: TelegramPeople;
  teller: Pick<Teller, "show">;
}

const PRIVATE = "This bot is private.";
const NO_MORE_CODES = "No code can be given at the moment. Try again in an hour.";

/** Answers users who are not served: with a pairing code while nobody is paired, with one sentence after that. */
export function createStrangers({ api, access, people, teller }: StrangersDeps) {
  return {
    async answer({ userId, chatId, asks, name, query }: StrangerUpdate["stranger"], key: string): Promise<void> {
      if (access.serves(userId)) return;
      const say = (pieces = plainPieces(PRIVATE)) => teller.show(key, placeOf(chatId, undefined), { pieces, once: true });
      if (query !== undefined) {
        people.meet(userId);
        await notTheirs(query);
      } else if (asks && access.user() === null) {
        const code = access.codeFor(userId, name);
        await say(code === undefined ? plainPieces(NO_MORE_CODES) : [pairingPiece(code)]);
      } else if (people.meet(userId)) await say();
    },
  };

  async function notTheirs(query: string): Promise<void> {
    try {
      await calling("answerCallbackQuery", () =>
        api.answerCallbackQuery(query, { text: "This is not yours to decide.", show_alert: true }),
      );
    } catch (error) {
      // The press has expired.
      if (troubleOf(error)?.kind !== "refused") throw error;
    }
  }
}
export type Strangers = ReturnType<typeof createStrangers>;

function pairingPiece(code: string) {
  return pieceOf([
    { text: "Your code: " },
    { text: code, code: true },
    { text: "\nIt holds for an hour. On the machine where IO runs:\n" },
    { text: `io telegram pair ${code}`, pre: "" },
  ]);
}
