import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Act, ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import { cleanEnvironment, IO, providerEnvironment, startDaemonProcess, type TestDaemon } from "./daemon.ts";
import { temporaryHome } from "./home.ts";
import { lastUserText, scriptedModel } from "./model.ts";
import { openTerminal, type TerminalOptions, type TestTerminal } from "./terminal.ts";

/** The user's own words, without the text that IO puts before them. */
export function saidIn(request: ChatRequest): string {
  return /\[via \w+\] ([\s\S]*)$/.exec(lastUserText(request))?.[1] ?? lastUserText(request);
}

export interface ChatOptions extends TerminalOptions {
  config?: Record<string, unknown>;
  env?: NodeJS.ProcessEnv;
}

export interface TestChat {
  home: string;
  model: ModelServer;
  daemon: TestDaemon;
  terminal: TestTerminal;
  /** Opens another terminal, or the same one again. */
  open(options?: TerminalOptions & { args?: string[] }): Promise<TestTerminal>;
}

/** Starts a daemon on a scripted model, and `io` in a terminal connected to it. */
export async function openChat(
  answer: (said: string, request: ChatRequest) => Act,
  { config = {}, env = {}, ...size }: ChatOptions = {},
): Promise<TestChat> {
  const model = await scriptedModel((request) => answer(saidIn(request), request));
  const home = temporaryHome(config);
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const open = async ({ args = [], ...options }: TerminalOptions & { args?: string[] } = {}) => {
    const command = [process.execPath, IO, ...args];
    const terminal = await openTerminal(home, command, cleanEnvironment(home, env), { ...size, ...options });
    await terminal.sees("connected", 30_000);
    return terminal;
  };
  return { home, model, daemon, terminal: await open(), open };
}

/** How often `part` occurs in `text`. */
export const count = (text: string, part: string): number => text.split(part).length - 1;
