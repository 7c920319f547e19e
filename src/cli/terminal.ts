import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../client/client.ts";
import { openConversation } from "../client/open-conversation.ts";
import { RESTORE_NOTE, RESTORE_ROOM } from "../home/data-folder.ts";
import { pathsOf } from "../home/paths.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import type { ConversationList } from "../protocol/conversations.ts";
import { Terminal } from "../tui/terminal.ts";
import { type ChatOptions, chatOptionsIn } from "./chat-options.ts";

/** Loaded first: shows the chat's prompt before the rest of IO is loaded, and passes every other command on. */
export async function main(program: "io" | "swarm", args: readonly string[]): Promise<void> {
  const { stdin: input, stdout: output, env } = process;
  const { home } = pathsOf(env);
  if (existsSync(join(home, RESTORE_ROOM, RESTORE_NOTE)) && !(await mended(home))) return;
  if (program === "io" && args.includes("--daemon") && args.every((arg) => arg in SERVING)) return serveAlone(args);
  const options = program === "io" ? chatOptionsIn(args) : undefined;
  if (!options || !input.isTTY || !output.isTTY || env.TERM === "dumb") return (await import("./io.ts")).main(program, args);
  // The terminal is gone.
  output.on("error", () => process.exit());
  const reach = async () => (await import("./chat.ts")).reachDaemon();
  try {
    const chosen = options.resume === undefined ? undefined : await resumed(await reach(), options.resume);
    const name = chosen?.name ?? options.conversation;
    const open = (client: Client) =>
      openConversation(client, { name, last: options.continue === true, folder: folderHere(), mode: options.mode });
    if (options.resume === undefined || chosen) await new Terminal({ connect: reach, open, home, env, input, output }).run();
  } catch (error) {
    (await import("./output.ts")).report(error, { json: false });
  }
  process.exit();
}

/** The options of a daemon's start. */
const SERVING: Record<string, "daemon" | "selfEdit" | "background" | "untilIdle"> = {
  "--daemon": "daemon",
  "--self-edit": "selfEdit",
  "--background": "background",
  "--until-idle": "untilIdle",
};

/** Starts the daemon without loading all other commands, which would take a tenth of its start. */
async function serveAlone(args: readonly string[]): Promise<void> {
  const { createShell, guardOutput, report } = await import("./output.ts");
  guardOutput();
  try {
    const { serve } = await import("./serve.ts");
    await serve(createShell(), Object.fromEntries(args.map((arg) => [SERVING[arg], true])));
  } catch (error) {
    report(error, { json: false });
  }
}

/** The conversation with that name, or the one that the person picks; undefined if they pick none. */
async function resumed(client: Client, wanted: NonNullable<ChatOptions["resume"]>): Promise<{ name: string } | undefined> {
  if (wanted !== true) return openConversation(client, { name: wanted, exists: true });
  const { pickConversation } = await import("../tui/picker.ts");
  const search = (words: string, after?: string) => {
    const query = new URLSearchParams({ limit: "50", ...(words && { q: words }), ...(after !== undefined && { before: after }) });
    return client.request<ConversationList>("GET", `/api/conversations?${query}`);
  };
  const { stdin: input, stdout: output, env } = process;
  const name = await pickConversation({ search, env, input, output });
  return name === undefined ? undefined : { name };
}

/** The current folder; undefined if it was deleted. */
function folderHere(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** Finishes a restore that was killed at its last step. False if that failed. */
async function mended(home: string): Promise<boolean> {
  try {
    const told = (await import("../backup/interrupted.ts")).finishRestore(home);
    if (told !== undefined) process.stderr.write(`${terminalSafe(told)}\n`);
    return true;
  } catch (error) {
    (await import("./output.ts")).report(error, { json: process.argv.includes("--json") });
    return false;
  }
}
