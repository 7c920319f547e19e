import { randomBytes } from "node:crypto";
import { type ExecResult, exec } from "./exec.ts";

/** A command that continues after the call that started it. */
export interface BackgroundCommand {
  id: string;
  /** Its holder (a conversation, task or run step) may read and stop it; the command ends with its holder. */
  holder: string;
  /** The message, task or step whose call started it. */
  owner: string;
  command: string;
  cwd: string;
  startedAt: Date;
  /** How it ended; undefined while it runs. */
  result: ExecResult | undefined;
  /** Resolves when it and all its children have ended. */
  ended: Promise<void>;
}

/** A range of output lines, counted from 1. */
export interface OutputPart {
  lines: string[];
  from: number;
  /** The number of lines so far. */
  total: number;
  /** The first line that is still kept. */
  oldest: number;
}

export interface StartOptions extends Pick<BackgroundCommand, "holder" | "owner" | "command" | "cwd"> {
  argv: readonly [string, ...string[]];
  env: NodeJS.ProcessEnv;
  /** Ends processes that left the command's process group. */
  sweep?: (() => Promise<void>) | undefined;
}

/** Runs commands in the background. None outlives this process. */
export interface BackgroundCommands {
  /** Undefined if the maximum number is already running. */
  start(options: StartOptions): BackgroundCommand | undefined;
  find(holder: string, id: string): BackgroundCommand | undefined;
  /** The commands of a holder, oldest first, including ended ones. */
  list(holder: string): BackgroundCommand[];
  read(id: string, from: number): OutputPart;
  /** Resolves with the next output, at the end, or after the time-out. */
  changed(id: string, withinMs: number, signal: AbortSignal): Promise<void>;
  stop(id: string): Promise<void>;
  /** Stops the commands that a message, task or step started. */
  stopOf(owner: string): Promise<void>;
  /** Stops and forgets the commands of a holder. */
  forget(holder: string): Promise<void>;
  stopAll(): Promise<void>;
  running(): number;
  /** The commands of all holders, oldest first, including ended ones. */
  all(): BackgroundCommand[];
}

export interface BackgroundCommandsDeps {
  /** Called when a command starts and when it ends. */
  onChange?: (command: BackgroundCommand) => void;
}

const MAX_RUNNING = 32;
const MAX_RUNNING_EACH = 8;
/** How many ended commands keep their output. */
const MAX_ENDED_EACH = 8;

interface Entry extends BackgroundCommand {
  output: ReturnType<typeof createLineBuffer>;
  abort: AbortController;
  listeners: Set<() => void>;
}

export function createBackgroundCommands({ onChange = () => undefined }: BackgroundCommandsDeps = {}): BackgroundCommands {
  const entries = new Map<string, Entry>();
  const of = (holder: string) => [...entries.values()].filter((entry) => entry.holder === holder);
  const isRunning = (entry: Entry) => entry.result === undefined;

  async function stop(entry: Entry): Promise<void> {
    entry.abort.abort();
    await entry.ended;
  }

  const stopEach = async (those: readonly Entry[]) => void (await Promise.all(those.map(stop)));

  function forgetOldest(holder: string): void {
    const ended = of(holder).filter((entry) => !isRunning(entry));
    for (const { id } of ended.slice(0, Math.max(0, ended.length - MAX_ENDED_EACH))) entries.delete(id);
  }

  return {
    start({ argv: [file, ...args], env, sweep, ...about }) {
      const running = [...entries.values()].filter(isRunning);
      const own = running.filter(({ holder }) => holder === about.holder);
      if (running.length >= MAX_RUNNING || own.length >= MAX_RUNNING_EACH) return undefined;
      const output = createLineBuffer();
      const abort = new AbortController();
      const listeners = new Set<() => void>();
      const notify = () => {
        for (const listener of [...listeners]) listener();
      };
      const entry: Entry = {
        ...about,
        ...{
          id: `b_${randomBytes(4).toString("hex")}`,
          startedAt: new Date(),
          result: undefined,
          output,
          abort,
          listeners,
        },
        ended: Promise.resolve(),
      };
      const onOutput = (text: string) => {
        output.add(text);
        notify();
      };
      const whole = exec(file, args, { cwd: about.cwd, env, signal: abort.signal, maxOutput: 8_000, onOutput });
      entry.ended = whole.then(async (result) => {
        await sweep?.();
        if (result.ending === "not-started") output.add(result.output);
        entry.result = result;
        notify();
        onChange(entry);
        forgetOldest(about.holder);
      });
      entries.set(entry.id, entry);
      onChange(entry);
      return entry;
    },
    find(holder, id) {
      const entry = entries.get(id);
      return entry?.holder === holder ? entry : undefined;
    },
    list: of,
    read: (id, from) => entries.get(id)?.output.read(from) ?? { lines: [], from, total: 0, oldest: 1 },
    changed(id, withinMs, signal) {
      const entry = entries.get(id);
      if (!entry || !isRunning(entry) || signal.aborted) return Promise.resolve();
      return new Promise((done) => {
        const finish = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", finish);
          entry.listeners.delete(finish);
          done();
        };
        const timer = setTimeout(finish, withinMs);
        signal.addEventListener("abort", finish, { once: true });
        entry.listeners.add(finish);
      });
    },
    async stop(id) {
      const entry = entries.get(id);
      if (entry) await stop(entry);
    },
    stopOf: (owner) => stopEach([...entries.values()].filter((entry) => entry.owner === owner && isRunning(entry))),
    async forget(holder) {
      const those = of(holder);
      await stopEach(those);
      for (const { id } of those) entries.delete(id);
    },
    stopAll: () => stopEach([...entries.values()].filter(isRunning)),
    running: () => [...entries.values()].filter(isRunning).length,
    all: () => [...entries.values()],
  };
}

const MAX_KEPT = 400_000;
const MAX_LINE = 2_000;

/** Keeps the newest lines of an unbounded text, with their numbers. */
export function createLineBuffer() {
  const lines: string[] = [];
  let last = "";
  let dropped = 0;
  let kept = 0;

  function close(line: string): void {
    lines.push(line);
    kept += line.length + 1;
    if (kept <= MAX_KEPT) return;
    let gone = 0;
    // Drop a quarter at once: shifting the array for every line would be slow.
    while (kept > MAX_KEPT * 0.75 && gone < lines.length) {
      kept -= lines[gone]!.length + 1;
      gone += 1;
    }
    lines.splice(0, gone);
    dropped += gone;
  }

  return {
    add(text: string): void {
      const parts = (last + text).split("\n");
      last = parts.pop()!.slice(-MAX_LINE);
      for (const part of parts) close(finalText(part));
    },
    read(from: number): OutputPart {
      const all = last === "" ? lines : [...lines, finalText(last)];
      const start = Math.max(from, dropped + 1);
      return { lines: all.slice(start - 1 - dropped), from: start, total: dropped + all.length, oldest: dropped + 1 };
    },
  };
}

/** The final text of a line that was overwritten, as by a progress bar. */
function finalText(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  return text.slice(text.lastIndexOf("\r") + 1).slice(0, MAX_LINE);
}
