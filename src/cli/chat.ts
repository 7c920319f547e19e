import { fstatSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { openConversation } from "../client/open-conversation.ts";
import { engineLine } from "../client/status.ts";
import { ExitCode, usageError } from "../lib/errors.ts";
import { howToType } from "../lib/invocation.ts";
import type { Status } from "../protocol/api.ts";
import { plainChat } from "../tui/plain.ts";
import type { ChatOptions } from "./chat-options.ts";
import { ensureDaemon } from "./daemon.ts";
import { createShell, folderHere, type Shell } from "./output.ts";

/** How long to wait for standard input before concluding that nobody writes there. */
const FIRST_WORD_MS = 3_000;

/** A client of the running daemon, which is started if necessary. */
export async function reachDaemon(shell: Shell = createShell()): Promise<Client> {
  // The chat's screen has no room for notes.
  const isNew = await ensureDaemon({ ...shell, note: () => undefined });
  const client = shell.client();
  if (isNew) return client;
  // A daemon that was started for one run would otherwise end after it.
  await client.request<Status>("POST", "/api/stay");
  return client;
}

/** A chat in plain lines, for pipes and simple terminals. */
export async function openPlainChat(shell: Shell, options: ChatOptions): Promise<void> {
  if (options.resume === true)
    throw usageError("To choose a conversation takes a terminal. Name it: io --resume <name> (io conversation list names all).");
  const wanted = {
    name: options.resume ?? options.conversation,
    exists: options.resume !== undefined,
    last: options.continue === true,
    mode: options.mode,
  };
  const client = await reachDaemon(shell);
  const { name: conversation } = await openConversation(client, { ...wanted, folder: folderHere() });
  const isTyped = process.stdin.isTTY === true;
  if (isTyped) {
    const status = await client.request<Status>("GET", "/api/status");
    shell.note(`IO ${status.version}, API at ${client.url}. ${engineLine(status)}`);
    const how = howToType({ env: shell.env, cwd: process.cwd() });
    if (how) shell.note(how);
    shell.note("Type a message, /help for commands, Ctrl-D to leave; IO goes on in the background (io stop ends it).");
  }
  const { stdin: input, stdout: output } = process;
  const isGood = await plainChat({ client, conversation, input, output, isTyped, note: shell.note });
  process.exitCode = isGood ? ExitCode.done : ExitCode.failed;
}

/** Whether standard input has something to say: a person, or a program that writes. */
export async function isSpokenTo(shell: Shell): Promise<boolean> {
  const { stdin } = process;
  if (stdin.isTTY) return true;
  if (fstatSync(stdin.fd).isCharacterDevice()) return false;
  const patience = new AbortController();
  const first = new Promise<boolean>((told) => {
    stdin.once("readable", () => told(stdin.readableLength > 0));
    stdin.once("end", () => told(false));
  });
  if (shell.daemon()) return first;
  const late = sleep(FIRST_WORD_MS, false, { signal: patience.signal }).catch(() => false);
  const isSpoken = await Promise.race([first, late]);
  patience.abort();
  return isSpoken;
}
