/** Why a call to Telegram failed, which tells whether it was carried out. */
export type Trouble =
  /** Not carried out; retrying is useless. */
  | { kind: "refused"; code: number; why: string }
  /** Not carried out; may be retried after some seconds. */
  | { kind: "flood"; seconds: number }
  /** Not carried out: Telegram was not reached. */
  | { kind: "unreached"; why: string }
  /** Unknown. */
  | { kind: "unknown"; why: string };

export function wordsOf(trouble: Trouble): string {
  if (trouble.kind === "refused") return `${trouble.code} ${trouble.why}`;
  return trouble.kind === "flood" ? `too many requests, again in ${trouble.seconds} s` : trouble.why;
}

/** Whether a refusal concerns the bot or its token rather than the request; it may be temporary. */
export const isAboutBot = (trouble: Trouble): boolean =>
  trouble.kind === "refused" && (trouble.code === 401 || trouble.code === 404 || trouble.code === 409);

/** Whether a chat accepts no messages: its user blocked the bot, is gone, or never wrote to it. */
export const isAboutChat = (trouble: Trouble): boolean =>
  trouble.kind === "refused" && (trouble.code === 403 || /chat not found|PEER_ID_INVALID/i.test(trouble.why));

/** Whether the same call may succeed later. */
export const mayHeal = (trouble: Trouble): boolean => trouble.kind !== "refused" || isAboutBot(trouble);
