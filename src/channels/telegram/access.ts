import { randomInt } from "node:crypto";
import { z } from "zod";
import { conflict, missing, type UserError } from "../../lib/errors.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { Paired, TelegramStatus } from "../../protocol/channels.ts";
import { readJson } from "../../store/read-json.ts";
import type { State } from "../../store/state.ts";
import type { TelegramPeople } from "../../store/telegram-people.ts";

export interface AccessDeps {
  people: TelegramPeople;
  state: State;
  /** A user who is always served, paired or not. */
  authorizedUserId: () => number | undefined;
  now?: () => Date;
}

/** Who may use the bot, decided by the sender's id alone. */
export interface Access {
  serves(userId: number): boolean;
  /** Records that a served user wrote in a chat. */
  heardIn(chatId: number, userId: number): void;
  /** Whether a chat belongs to a served user: no other chat gets any message, even if it asked once. */
  servesChat(chatId: number): boolean;
  user(): TelegramStatus["user"];
  /** A pairing code for an unknown user; undefined if none can be given. */
  codeFor(userId: number, name: string): string | undefined;
  /** Redeems a code that a person typed at the terminal. */
  pair(code: string): Paired;
  unpair(): void;
  lockedUntil(): string | null;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const CODE_LENGTH = 8;
const CODE_MS = 3_600_000;
const MAX_PENDING = 3;
const MAX_WRONG = 5;
const LOCK_MS = 3_600_000;

const PAIRED = "telegram:paired";
const WRONG = "telegram:wrong-codes";
const PairedUser = z.object({ id: z.number().int(), name: z.string() });
const Wrong = z.object({ count: z.number().int(), lockedUntil: z.string().nullable() });
const NONE = { count: 0, lockedUntil: null };
/** A private chat usually has its user's id; where it has not, this records the user. */
const chatKey = (chatId: number) => `telegram:chat:${chatId}`;

export function createAccess({ people, state, authorizedUserId, now = () => new Date() }: AccessDeps): Access {
  const paired = () => readJson(PairedUser, state.get(PAIRED));
  const wrong = () => readJson(Wrong, state.get(WRONG)) ?? NONE;
  const lockedUntil = (): string | null => {
    const { lockedUntil: until } = wrong();
    return until !== null && until > now().toISOString() ? until : null;
  };

  function user(): TelegramStatus["user"] {
    const id = authorizedUserId();
    if (id !== undefined) return { id, name: null, by: "config" };
    const known = paired();
    return known ? { ...known, by: "pairing" } : null;
  }

  function refuse(): never {
    const { count } = lockedUntil() === null && wrong().lockedUntil !== null ? NONE : wrong();
    const isLast = count + 1 >= MAX_WRONG;
    const until = isLast ? new Date(now().getTime() + LOCK_MS).toISOString() : null;
    state.set(WRONG, JSON.stringify({ count: count + 1, lockedUntil: until }));
    if (until !== null) throw locked(until);
    throw missing(
      "This is no code that is waiting, or it is older than an hour. Send /start to the bot for a new one, and type it as the bot shows it.",
    );
  }

  const ownerOf = (chatId: number) => Number(state.get(chatKey(chatId)) ?? chatId);

  return {
    serves: (userId) => user()?.id === userId,
    heardIn(chatId, userId) {
      if (ownerOf(chatId) !== userId) state.set(chatKey(chatId), String(userId));
    },
    servesChat: (chatId) => user()?.id === ownerOf(chatId),
    user,
    codeFor(userId, name) {
      if (user() !== null) return undefined;
      const pending = people.pending();
      const own = pending.find((each) => each.userId === userId);
      if (own) return own.code;
      if (pending.length >= MAX_PENDING) return undefined;
      const code = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
      people.addCode({ code, userId, name: oneLine(name, 60), expiresAt: new Date(now().getTime() + CODE_MS).toISOString() });
      return code;
    },
    pair(given) {
      const until = lockedUntil();
      if (until !== null) throw locked(until);
      const known = user();
      if (known?.by === "config")
        throw conflict("authorizedUserId in config.json says who is served. Take it out first if somebody is to be paired.");
      if (known) throw conflict(`The bot serves ${known.name ?? known.id} already. Run "io telegram unpair" first.`);
      const found = people.pending().find(({ code }) => code === given.trim().toUpperCase());
      if (!found) refuse();
      state.set(PAIRED, JSON.stringify({ id: found.userId, name: found.name }));
      state.delete(WRONG);
      people.clearCodes();
      return { userId: found.userId, name: found.name };
    },
    unpair() {
      const known = user();
      if (known?.by === "config") throw conflict("authorizedUserId in config.json says who is served. Take it out there.");
      if (!known) throw conflict("Nobody is paired.");
      state.delete(PAIRED);
    },
    lockedUntil,
  };
}

function locked(until: string): UserError {
  return conflict(`Too many wrong codes. No code is taken until ${until.slice(0, 16).replace("T", " ")} UTC.`);
}
