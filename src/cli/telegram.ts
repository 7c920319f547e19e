import type { Command } from "commander";
import { channelLine } from "../client/status.ts";
import type { Paired, TelegramStatus } from "../protocol/channels.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

/** `io telegram`: the Telegram channel. */
export function telegramCommands(program: Command, shell: Shell): void {
  const telegram = program.command("telegram").description("IO as a Telegram bot: who it serves and how it stands");

  telegram
    .command("pair")
    .description("serve whoever was given this code by the bot")
    .argument("<code>", "8 letters and digits, as the bot shows them after /start")
    .option(...JSON_OPTION)
    .action(async (code: string, options: Json) => {
      const paired = await shell.client().request<Paired>("POST", "/api/telegram/pair", { code });
      const who = `${paired.name || "somebody without a name"} (Telegram id ${paired.userId})`;
      shell.print(paired, `The bot serves ${who} now. If that is not you: io telegram unpair`, options);
    });

  telegram
    .command("status")
    .description("whether Telegram is reached, and who is served")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const status = await shell.client().request<TelegramStatus>("GET", "/api/telegram");
      shell.print(status, () => describe(status), options);
    });

  telegram
    .command("unpair")
    .description("serve nobody any more")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const status = await shell.client().request<TelegramStatus>("POST", "/api/telegram/unpair", {});
      shell.print(status, "The bot serves nobody now. /start in a chat with it gives a new code.", options);
    });
}

function describe(status: TelegramStatus): string {
  const { bot, user, pending, lockedUntil, strangers, topics, transcriber, state } = status;
  if (state === "off")
    return 'Telegram is off. Make a bot with @BotFather, then set "telegramEnabled": true and "telegramBotToken" in config.json.';
  const served = user
    ? `${user.name ?? "the user"} (Telegram id ${user.id}), by ${user.by === "config" ? "authorizedUserId" : "pairing"}`
    : `nobody yet. Send /start to the bot${bot ? ` @${bot}` : ""}, then: io telegram pair <code>`;
  return [
    channelLine(status),
    ...(bot ? [`Bot: @${bot}${topics ? ", with topics" : ""}`] : []),
    `Serves: ${served}`,
    ...(pending > 0 ? [`Codes that wait: ${pending}`] : []),
    ...(lockedUntil ? [`No code is taken until ${lockedUntil}, after too many wrong ones`] : []),
    `Strangers: ${strangers.people}, with ${strangers.messages} messages that nobody read`,
    `Voice: ${transcriber ? "goes through transcribeCommand" : "no transcriber (transcribeCommand in config.json)"}`,
  ].join("\n");
}
