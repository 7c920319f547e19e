import { join } from "node:path";
import { onTestFinished } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { ensureProgram } from "./program.ts";

/** A real terminal with a command in it. */
export async function openTerminal(folder: string, command: string[], env: NodeJS.ProcessEnv) {
  await ensureProgram("tmux");
  const socket = join(folder, "tmux.sock");
  const tmux = (...args: string[]) =>
    exec("tmux", ["-S", socket, ...args], { env: { PATH: process.env.PATH, TERM: "xterm-256color", LANG: "C.UTF-8" } });
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const started = await tmux(
    "new-session",
    "-d",
    "-s",
    "t",
    "-x",
    "100",
    "-y",
    "40",
    "env",
    "-i",
    ...settings,
    "TERM=xterm-256color",
    "LANG=C.UTF-8",
    ...command,
  );
  if (started.code !== 0) throw new Error(started.output);
  onTestFinished(async () => void (await tmux("kill-server")));
  return {
    type: (text: string) => tmux("send-keys", "-t", "t", "-l", text),
    press: (key: string) => tmux("send-keys", "-t", "t", key),
    screen: async () => (await tmux("capture-pane", "-t", "t", "-p")).stdout,
    isOpen: async () => (await tmux("has-session", "-t", "t")).code === 0,
  };
}
