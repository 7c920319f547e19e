import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { ensureProgram } from "./program.ts";
import { until } from "./until.ts";

export interface TerminalOptions {
  columns?: number;
  rows?: number;
  /** Distinguishes terminals that share a folder. */
  name?: string;
  /** The command's working directory. If missing, the terminal's folder. */
  cwd?: string;
}

/** A real terminal that runs a command, with a recorder of every byte that the command writes. */
export async function openTerminal(
  folder: string,
  command: string[],
  env: NodeJS.ProcessEnv,
  { columns = 100, rows = 40, name = "t", cwd = folder }: TerminalOptions = {},
) {
  await ensureProgram("tmux");
  const socket = join(folder, `${name}.sock`);
  const recorded = join(folder, `${name}.bytes`);
  const ready = join(folder, `${name}.ready`);
  const tmux = (...args: string[]) =>
    exec("tmux", ["-S", socket, ...args], { env: { PATH: process.env.PATH, TERM: "xterm-256color", LANG: "C.UTF-8" } });
  const settings = Object.entries({ ...env, TERM: "xterm-256color", LANG: "C.UTF-8", ...pick(env, "TERM") });
  // The command waits until the recorder runs, so that the first byte is recorded too.
  const waits = 'while [ ! -e "$0" ]; do sleep 0.02; done; exec "$@"';
  const inside = ["env", "-i", ...settings.map(([key, value]) => `${key}=${value}`), "sh", "-c", waits, ready, ...command];
  const size = ["-x", String(columns), "-y", String(rows)];
  const server = ["-f", "/dev/null", "set-option", "-g", "history-limit", "50000", ";"];
  const focus = ["set-option", "-g", "focus-events", "on", ";"];
  const started = await tmux(...server, ...focus, "new-session", "-d", "-s", "t", "-c", cwd, ...size, ...inside);
  if (started.code !== 0) throw new Error(started.output);
  onTestFinished(async () => void (await tmux("kill-server")));
  await tmux("pipe-pane", "-t", "t", `cat >> '${recorded}'`);
  writeFileSync(ready, "");
  const screen = async () => (await tmux("capture-pane", "-t", "t", "-p")).stdout;
  return {
    type: (text: string) => tmux("send-keys", "-t", "t", "-l", "--", text),
    /** Presses keys, one right after the other. */
    press: (...keys: string[]) => tmux("send-keys", "-t", "t", ...keys),
    /** Sends bytes that a terminal sends by itself, such as on a loss of focus. */
    send: (bytes: string) => tmux("send-keys", "-t", "t", "-H", ...Array.from(Buffer.from(bytes), (byte) => byte.toString(16))),
    /** The terminal's title. */
    title: async () => (await tmux("display-message", "-t", "t", "-p", "#{pane_title}")).stdout.trim(),
    /** Types a line and presses Enter. */
    async enter(text: string) {
      await tmux("send-keys", "-t", "t", "-l", "--", text);
      await tmux("send-keys", "-t", "t", "Enter");
    },
    async paste(text: string) {
      await tmux("set-buffer", "--", text);
      await tmux("paste-buffer", "-p", "-t", "t");
    },
    resize: (width: number, height: number) => tmux("resize-window", "-t", "t", "-x", String(width), "-y", String(height)),
    screen,
    /** The whole scrollback and screen. Lines that the terminal wrapped are joined. */
    scrollback: async () => (await tmux("capture-pane", "-t", "t", "-p", "-J", "-S", "-")).stdout,
    /** The position of the terminal's cursor, from the left and from the top. */
    async cursor() {
      const { stdout } = await tmux("display-message", "-t", "t", "-p", "#{cursor_x} #{cursor_y}");
      const [x = -1, y = -1] = stdout.trim().split(" ").map(Number);
      return { x, y };
    },
    /** Every byte written so far. */
    bytes: () => (existsSync(recorded) ? readFileSync(recorded, "utf8") : ""),
    /** Waits until the text is among the bytes: the recorder may be a moment behind the screen. */
    writes: (text: string) =>
      until(
        `${JSON.stringify(text)} among the bytes`,
        () => existsSync(recorded) && readFileSync(recorded, "utf8").includes(text),
      ),
    /** Waits until the screen shows it. */
    sees: (what: string | RegExp, withinMs?: number) =>
      until(
        `${what} on the screen`,
        async () => {
          const shown = await screen();
          return typeof what === "string" ? shown.includes(what) : what.test(shown);
        },
        withinMs,
      ).catch(async (error: unknown) => {
        throw new Error(`${String(error)}\n${await screen()}`);
      }),
    /** Closes the terminal while its command is running. */
    hangUp: () => tmux("kill-server"),
    isOpen: async () => (await tmux("has-session", "-t", "t")).code === 0,
  };
}
export type TestTerminal = Awaited<ReturnType<typeof openTerminal>>;

function pick(env: NodeJS.ProcessEnv, name: string): NodeJS.ProcessEnv {
  return env[name] === undefined ? {} : { [name]: env[name] };
}

/** Sequences that IO must never write: clearing the scrollback, the alternate screen, mouse reporting. */
export const FORBIDDEN: readonly string[] = [
  ...["3J", "?1049h", "?1047h", "?47h", "?9h", "?1000h", "?1001h", "?1002h", "?1003h", "?1005h", "?1006h", "?1015h", "?1016h"],
].map((code) => `\u001b[${code}`);

/** The forbidden sequences among the bytes. */
export function forbiddenIn(bytes: string): string[] {
  return FORBIDDEN.filter((sequence) => bytes.includes(sequence)).map((sequence) => JSON.stringify(sequence));
}

/** The bytes without colour sequences. */
export const uncoloured = (bytes: string): string => bytes.replaceAll("\u001b", "␛").replace(/␛\[[\d;]*m/g, "");

/**
 * The lines, given in their order, that were printed again after they were final. A line is final once the line three further
 * down was written: after that, it must not occur among the bytes.
 */
export function reprinted(bytes: string, lines: readonly string[]): string[] {
  const text = uncoloured(bytes);
  return lines.filter((line, at) => {
    const later = lines[at + 3];
    const from = later === undefined ? -1 : text.indexOf(later);
    return from >= 0 && text.includes(line, from);
  });
}
