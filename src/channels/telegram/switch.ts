import type { Config } from "../../home/config.ts";
import type { LiveConfig } from "../../home/live-config.ts";
import type { Paired, TelegramStatus } from "../../protocol/channels.ts";
import { createState } from "../../store/state.ts";
import { createTelegramPeople } from "../../store/telegram-people.ts";
import type { Channel } from "../channel.ts";
import { createAccess } from "./access.ts";
import type { OpenTelegram, TelegramDeps } from "./channel.ts";
import { createHealth } from "./health.ts";

export interface TelegramSwitchDeps
  extends Omit<TelegramDeps, "token" | "apiRoot" | "state" | "people" | "access" | "health" | "transcribe"> {
  settings: LiveConfig;
  env: NodeJS.ProcessEnv;
  hub: TelegramDeps["hub"] & { emit: Parameters<typeof createHealth>[0]["emit"] };
  transcriber: (command: NonNullable<Config["transcribeCommand"]>) => (file: string) => Promise<string>;
}

/** The Telegram channel, and its terminal commands. */
export interface Telegram extends Channel {
  status(): TelegramStatus;
  pair(code: string): Paired;
  unpair(): void;
}

const API_ROOT = "https://api.telegram.org";
const KEYS = ["telegramEnabled", "telegramBotToken", "telegramApiRoot", "transcribeCommand"];

/** Follows the configuration: loads the channel's code only when it is enabled. */
export function createTelegram({ settings, env, transcriber, ...deps }: TelegramSwitchDeps): Telegram {
  const { store, hub, log } = deps;
  const state = createState(store);
  const people = createTelegramPeople(store);
  const access = createAccess({ people, state, authorizedUserId: () => settings.current().authorizedUserId });
  const health = createHealth({ state, emit: hub.emit });
  let open: OpenTelegram | undefined;
  let changing: Promise<void> = Promise.resolve();
  let closed = false;
  let waiters: (() => void)[] = [];
  let unsubscribe = () => undefined as unknown;

  const wake = () => {
    const all = waiters;
    waiters = [];
    for (const waiter of all) waiter();
  };

  async function follow(): Promise<void> {
    await open?.close();
    open = undefined;
    const config = settings.current();
    const token = env.TELEGRAM_BOT_TOKEN || config.telegramBotToken;
    if (!config.telegramEnabled || closed) {
      if (!health.is("off") && !closed) health.set("off");
      return;
    }
    if (!token) {
      health.set(
        "refused",
        "telegramEnabled is on, but there is no bot token. Set telegramBotToken to the one that @BotFather shows.",
      );
      return;
    }
    const apiRoot = env.IO_TELEGRAM_API_ROOT || config.telegramApiRoot || API_ROOT;
    const { openTelegram } = await import("./channel.ts");
    const { transcribeCommand } = config;
    const transcribe = transcribeCommand ? transcriber(transcribeCommand) : undefined;
    open = openTelegram({ ...deps, token, apiRoot, state, people, access, health, transcribe });
    wake();
  }
  const change = () => {
    changing = changing.then(follow).catch((error: unknown) => log.error("Telegram could not be switched", { error }));
    return changing;
  };

  return {
    name: "telegram",
    carries: ({ channel }) => channel === "telegram",
    async start() {
      unsubscribe = hub.subscribe((event) => {
        if (event.type === "config.changed" && event.data.keys.some((key) => KEYS.includes(key))) void change();
      });
      if (settings.current().telegramEnabled || !health.is("off")) await change();
    },
    async deliver(what) {
      // Entries of the outbox wait until the channel is enabled again.
      while (!open && !closed) await new Promise<void>((on) => waiters.push(on));
      if (!open) throw new Error("Telegram is being closed");
      return open.deliver(what);
    },
    async close() {
      closed = true;
      unsubscribe();
      wake();
      await changing;
      await open?.close();
      open = undefined;
    },
    status: () => ({
      ...health.info(),
      bot: open?.bot() ?? null,
      user: access.user(),
      pending: people.pending().length,
      lockedUntil: access.lockedUntil(),
      strangers: people.strangers(),
      topics: open?.hasTopics() ?? false,
      transcriber: settings.current().transcribeCommand !== undefined,
    }),
    pair(code) {
      const paired = access.pair(code);
      open?.greet(paired.userId);
      return paired;
    },
    unpair: access.unpair,
  };
}
