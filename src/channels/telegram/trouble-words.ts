/** Why a call to Telegram failed, and so whether it was carried out. */
export type Trouble =
  /** It was not, and will not be. */
  | { kind: "refused"; code: number; why: string }
  /** It was not; it may be asked again after some seconds. */
  | { kind: "flood"; seconds: number }
  /** It was not: nobody was reached. */
  | { kind: "unreached"; why: string }
  /** Nobody knows. */
  | { kind: "unknown"; why: string };

export function wordsOf(trouble: Trouble): string {
  if (trouble.kind === "refused") return `${trouble.code} ${trouble.why}`;
  return trouble.kind === "flood" ? `too many requests, again in ${trouble.seconds} s` : trouble.why;
}

/** Whether a refusal is about the bot and its token, and none about what was asked; it may be taken back. */
export const isAboutBot = (trouble: Trouble): boolean =>
  trouble.kind === "refused" && (trouble.code === 401 || trouble.code === 404 || trouble.code === 409);

/** Whether nothing can be told in a chat: its user blocked the bot, is gone, or never wrote to it. */
export const isAboutChat = (trouble: Trouble): boolean =>
  trouble.kind === "refused" && (trouble.code === 403 || /chat not found|PEER_ID_INVALID/i.test(trouble.why));

/** Whether the same call may succeed later. */
export const mayHeal = (trouble: Trouble): boolean => trouble.kind !== "refused" || isAboutBot(trouble);
