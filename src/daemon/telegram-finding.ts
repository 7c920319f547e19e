import { existsSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import { HEALTH_KEY, readHealth } from "../channels/telegram/health.ts";
import type { Config } from "../home/config.ts";
import { findDaemon } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import type { ChannelInfo } from "../protocol/channels.ts";
import type { Finding } from "../protocol/doctor.ts";
import { lockHolder } from "../store/lock.ts";

export interface TelegramFindingDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  config: Config;
}

/** The state of the Telegram channel, as the daemon stored it; nothing if it is off. */
export function findTelegram({ paths, env, config }: TelegramFindingDeps): Finding[] {
  const check = "telegram";
  if (!config.telegramEnabled) return [];
  if (!env.TELEGRAM_BOT_TOKEN && !config.telegramBotToken)
    return [
      {
        check,
        state: "failed",
        found: "telegramEnabled is on, but there is no bot token",
        remedy: "Make a bot with @BotFather and set telegramBotToken to its token.",
      },
    ];
  if (!findDaemon(paths, lockHolder)) return [{ check, state: "ok", found: "is on; no daemon runs that could use it" }];
  const health = kept(paths.database);
  if (!health) return [{ check, state: "warning", found: "the daemon has not begun to use it", remedy: 'Run "io restart".' }];
  const found = `${health.state} since ${health.since.slice(0, 16).replace("T", " ")} UTC`;
  const { state, detail } = health;
  if (state === "connected" && detail !== null)
    return [{ check, state: "warning", found: `${found}: ${detail}`, remedy: "Unblock the bot in Telegram and send it /start." }];
  if (state === "connected" || state === "starting") return [{ check, state: "ok", found }];
  const remedy = state === "unreachable" ? UNREACHABLE : (detail ?? 'Run "io telegram status".');
  return [{ check, state: "failed", found: detail === null ? found : `${found}: ${detail}`, remedy }];
}

const UNREACHABLE =
  "Check the network, and telegramApiRoot if you set it. Nothing is lost: what is owed is delivered when Telegram is back.";

function kept(database: string): ChannelInfo | undefined {
  if (!existsSync(database)) return undefined;
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    const read = db.prepare("SELECT value FROM io_state WHERE key = ?");
    return readHealth({ get: () => (read.get(HEALTH_KEY) as { value: string } | undefined)?.value });
  } finally {
    db.close();
  }
}
