import { onTestFinished } from "vitest";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { TelegramStatus } from "../../../src/protocol/channels.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../daemon.ts";
import { type AtTheEnd, temporaryHome } from "../home.ts";
import { lastUserText, scriptedModel } from "../model.ts";
import { until } from "../until.ts";
import { BOT_TOKEN, type BotApi, startBotApi } from "./bot-api.ts";
import { createPerson, type TelegramPerson } from "./person.ts";

export const OWNER = 4_242;

/** A model that repeats what it was told. */
export const echo: Model = (request) => ({ say: `You said: ${/\[via \w+\] ([\s\S]*)/.exec(lastUserText(request))?.[1]}` });

export interface Telegraphed {
  api: BotApi;
  model: ModelServer;
  home: string;
  daemon: TestDaemon;
  /** A person whom the bot serves. */
  owner: TelegramPerson;
  /** Starts another daemon on the same home. */
  start(): Promise<TestDaemon>;
}

export interface TelegraphedOptions {
  config?: Record<string, unknown>;
  env?: NodeJS.ProcessEnv;
  api?: BotApi;
  /** When to clean up: after the test by default. A concurrent test passes its own `onTestFinished`. */
  atTheEnd?: AtTheEnd;
}

export const telegramConfig = (api: BotApi) => ({
  telegramEnabled: true,
  telegramBotToken: BOT_TOKEN,
  telegramApiRoot: api.url,
});

/** Starts a daemon whose bot serves one person, on a fake Bot API server. */
export async function telegraphed(
  model: Model = echo,
  { config = {}, env = {}, atTheEnd = onTestFinished, ...given }: TelegraphedOptions = {},
): Promise<Telegraphed> {
  const api = given.api ?? (await startBotApi(atTheEnd));
  const scripted = await scriptedModel(model, undefined, atTheEnd);
  const home = temporaryHome({ ...telegramConfig(api), authorizedUserId: OWNER, ...config }, atTheEnd);
  const start = () => startDaemonProcess(home, { ...providerEnvironment(scripted.url), ...env }, atTheEnd);
  const daemon = await start();
  await isConnected(daemon);
  return { api, model: scripted, home, daemon, owner: createPerson(api, OWNER, "Olga"), start };
}

export const telegramOf = (daemon: TestDaemon) => daemon.json<TelegramStatus>("GET", "/api/telegram");

export const isConnected = (daemon: TestDaemon) =>
  until("the bot to be connected", async () => (await telegramOf(daemon)).state === "connected");
