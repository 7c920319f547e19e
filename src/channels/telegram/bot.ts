import { autoRetry } from "@grammyjs/auto-retry";
import { Api, type Transformer } from "grammy";
import { withoutEnd } from "../../lib/trim.ts";
import { TelegramTrouble, troubleOf } from "./trouble.ts";

export interface BotDeps {
  token: string;
  apiRoot: string;
  /** Aborts every call. */
  signal: AbortSignal;
}

/** Longer than a slow server needs, shorter than anybody waits. */
const CALL_SECONDS = 75;

/**
 * Telegram's API. Edits and similar calls wait as long as Telegram asks and are retried; sent messages are not, because the
 * sender must know whether they arrived.
 */
export function createBot({ token, apiRoot, signal }: BotDeps): Api {
  const api = new Api(token, { apiRoot: withoutEnd(apiRoot, "/"), timeoutSeconds: CALL_SECONDS, sensitiveLogs: false });
  const patiently = autoRetry({
    rethrowHttpErrors: true,
    rethrowInternalServerErrors: true,
    maxRetryAttempts: 5,
    maxDelaySeconds: 900,
  });
  const retrying: Transformer = (call, method, payload, own) =>
    method.startsWith("send") || method === "getUpdates" ? call(method, payload, own) : patiently(call, method, payload, own);
  const ending: Transformer = (call, method, payload, own) =>
    call(method, payload, (own ?? signal) as Parameters<typeof call>[2]);
  api.config.use(retrying, ending);
  return api;
}

/** Makes a call; its error contains neither the token nor the address, which grammY's errors do. */
export async function calling<T>(method: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const trouble = troubleOf(error);
    throw trouble ? new TelegramTrouble(method, trouble) : error;
  }
}
