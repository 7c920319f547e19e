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
