import { autoRetry } from "@grammyjs/auto-retry";
import { Api, type Transformer } from "grammy";
import { withoutEnd } from "../../lib/trim.ts";
import { TelegramTrouble, troubleOf } from "./trouble.ts";

export interface BotDeps {
  token: string;
  apiRoot: string;
  /** Ends every call that is under way. */
  signal: AbortSignal;
}

/** Longer than a slow server takes, shorter than anybody waits. */
const CALL_SECONDS = 75;

/**
 * Telegram's API. Edits and the like wait as long as Telegram asks and are repeated; a message that is sent is not, since
 * whoever sends it has to know whether it was.
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

/** Makes a call; its failure is told without the token and the address that grammY's errors carry. */
export async function calling<T>(method: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const trouble = troubleOf(error);
    throw trouble ? new TelegramTrouble(method, trouble) : error;
  }
}
