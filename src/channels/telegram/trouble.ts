import { GrammyError, HttpError } from "grammy";
import { type Trouble, wordsOf } from "./trouble-words.ts";

const NEVER_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"];

/** A failed call; its message contains neither the token nor the address. */
export class TelegramTrouble extends Error {
  readonly trouble: Trouble;
  constructor(method: string, trouble: Trouble) {
    super(`Telegram, ${method}: ${wordsOf(trouble)}`);
    this.name = "TelegramTrouble";
    this.trouble = trouble;
  }
}

/** What a failed call means; undefined for an error that did not come from Telegram. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof TelegramTrouble) return error.trouble;
  if (error instanceof GrammyError) {
    const { error_code: code, description, parameters } = error;
    if (parameters.retry_after !== undefined) return { kind: "flood", seconds: parameters.retry_after };
    return code >= 500 ? { kind: "unknown", why: `${code} ${description}` } : { kind: "refused", code, why: description };
  }
  if (error instanceof HttpError) {
    const code = codeIn(error.error);
    if (code !== undefined && NEVER_CONNECTED.includes(code)) return { kind: "unreached", why: code };
    return { kind: "unknown", why: code ?? "no whole answer" };
  }
  return undefined;
}

function codeIn(error: unknown): string | undefined {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
