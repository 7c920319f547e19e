import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import { quotedForShell } from "../lib/invocation.ts";
import { isFolder } from "../lib/is-folder.ts";
import { createHearing, type ExecResult, killGroup } from "./exec.ts";
import type { Stand, Wrap } from "./sandbox.ts";

/** A command for a shell that is there already. */
export interface Told {
  argv: readonly [string, ...string[]];
  cwd: string;
  /** The folder that its wall is put up for. Whoever has the same place, stand and environment may share a shell. */
  place: string;
  stand: Stand;
  env: NodeJS.ProcessEnv;
  /** What this command is told besides. */
  also?: NodeJS.ProcessEnv | undefined;
  input?: string | undefined;
  signal?: AbortSignal | undefined;
  deadlineMs: number;
  maxOutput?: number | undefined;
}

/**
 * Shells that stay behind the wall for a while and run one command after the other. A command that is run by one costs neither
 * a wall of its own nor a copy of the daemon's memory map. Each serves one command at a time, and is used again only if that
 * one left no process behind, and for one that would be given the very same wall now.
 */
export interface Shells {
  /** Runs a command; undefined for one that has to be run by itself, since there is no wall or it is too long. Rejects only as the wall does. */
  run(told: Told): Promise<ExecResult | undefined>;
  /** Ends those that wait; those at work end with their commands. */
  close(): void;
}

const SHELL = "/bin/sh";
const IDLE_MS = 5_000;
const MOST_IDLE = 8;
/** The shell and the first process of its own process list, which waits for it. */
const ALONE = 2;
/** A program is not given more in one go by every system. */
const LONGEST = 100_000;

interface Shell {
  child: ChildProcessWithoutNullStreams;
  /** Its program and arguments, and its environment. */
  key: string;
  timer?: NodeJS.Timeout;
}

export function createShells(wrap: Wrap): Shells {
  const idle: Shell[] = [];
  let closed = false;

  const end = (shell: Shell): void => {
    clearTimeout(shell.timer);
    const at = idle.indexOf(shell);
    if (at >= 0) idle.splice(at, 1);
    killGroup(shell.child.pid);
  };

  function keep(shell: Shell): void {
    if (closed || idle.length >= MOST_IDLE) {
      end(shell);
      return;
    }
    shell.timer = setTimeout(() => end(shell), IDLE_MS);
    shell.timer.unref();
    hold(shell, false);
    idle.push(shell);
  }

  function take(key: string, start: () => Shell): Shell {
    const at = idle.findLastIndex((each) => each.key === key);
    const shell = at < 0 ? start() : idle.splice(at, 1)[0]!;
    clearTimeout(shell.timer);
    hold(shell, true);
    return shell;
  }

  return {
    async run(told) {
      const { argv, cwd, place, stand, env, also = {}, input = "" } = told;
      const words = [...argv, cwd, input, ...Object.values(also).map((value) => value ?? "")];
      const length = words.reduce((sum, word) => sum + word.length, 0);
      if (length > LONGEST || words.some((word) => word.includes("\0")) || !isFolder(cwd)) return undefined;
      const [file, ...rest] = await wrap([SHELL, "-s"], place, stand);
      if (file === SHELL) return undefined;
      const key = JSON.stringify([file, rest, env]);
      const shell = take(key, () => {
        const child = spawn(file, rest, { cwd: place, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
        const begun: Shell = { child, key };
        // One that is gone is found by nobody; whoever waits for its answer hears of it by itself.
        child.once("exit", () => end(begun));
        child.on("error", () => end(begun));
        child.stdin.on("error", () => undefined);
        return begun;
      });
      const { result, isAlone } = await tell(shell.child, told);
      if (isAlone) keep(shell);
      else end(shell);
      return result;
    },
    close() {
      closed = true;
      for (const shell of [...idle]) end(shell);
    },
  };
}

/** Whether this process waits for it before it ends. */
function hold({ child }: Shell, wait: boolean): void {
  const pipes = [child.stdin, child.stdout, child.stderr].filter((pipe) => pipe instanceof Socket);
  for (const each of [child, ...pipes]) wait ? each.ref() : each.unref();
}

/** Has a shell run one command, and hears it to its end. */
function tell(child: ChildProcessWithoutNullStreams, told: Told): Promise<{ result: ExecResult; isAlone: boolean }> {
  const { signal, deadlineMs, maxOutput } = told;
  const mark = randomBytes(16).toString("hex");
  const heard = createHearing(maxOutput);
  return new Promise((done) => {
    let last = "";
    let ending: ExecResult["ending"] = "exited";
    const stop = (why: ExecResult["ending"]) => {
      ending = why;
      finish(null, false);
      killGroup(child.pid);
    };
    const onAbort = () => stop("aborted");
    const onDeath = (code: number | null) => finish(code, false);
    const timer = setTimeout(() => stop("deadline"), deadlineMs);
    const finish = (code: number | null, isAlone: boolean) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      child.removeListener("close", onDeath);
      child.removeListener("error", onError);
      child.stdout.removeListener("data", out.take);
      child.stderr.removeListener("data", err.take);
      out.rest();
      err.rest();
      done({ result: heard.result(code, ending), isAlone });
    };
    const onError = (error: Error) => {
      heard.tell(error.message);
      ending = "not-started";
      finish(null, false);
    };
    let open = 2;
    const over = (rest: string) => {
      last ||= rest;
      open -= 1;
      if (open > 0) return;
      const [code = "", processes = ""] = last.split(" ");
      finish(Number(code), Number(processes) === ALONE);
    };
    const out = until(mark, heard.out, over);
    const err = until(mark, heard.err, () => over(""));
    child.stdout.on("data", out.take);
    child.stderr.on("data", err.take);
    child.once("close", onDeath);
    child.once("error", onError);
    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    child.stdin.write(scriptOf(told, mark));
  });
}

/** Passes on what comes before a mark, then what stands behind it up to the end of that line; `rest` is for one that never comes. */
function until(mark: string, hear: (chunk: Buffer) => unknown, over: (told: string) => void) {
  let held: Buffer = Buffer.alloc(0);
  const pass = (length: number) => {
    if (length > 0) hear(held.subarray(0, length));
    held = held.subarray(length);
  };
  return {
    take(chunk: Buffer): void {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const at = held.indexOf(mark);
      // The mark may have been cut in two.
      pass(at < 0 ? Math.max(0, held.length - mark.length) : at);
      const lineEnd = at < 0 ? -1 : held.indexOf("\n");
      if (lineEnd < 0) return;
      const told = held.subarray(mark.length, lineEnd).toString("latin1").trim();
      held = Buffer.alloc(0);
      over(told);
    },
    rest: () => pass(held.length),
  };
}

/** What a shell reads: the command in a shell of its own, then how it ended and how many processes there are. */
function scriptOf({ argv, cwd, also = {}, input }: Told, mark: string): string {
  const set = Object.entries(also).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quotedForShell(value)}`]));
  const exported = set.length > 0 ? `export ${set.join(" ")} && ` : "";
  const command = `(cd ${quotedForShell(cwd)} && ${exported}exec ${argv.map(quotedForShell).join(" ")})`;
  const fed = input === undefined ? `${command} </dev/null` : `printf %s ${quotedForShell(input)} | ${command}`;
  return `${fed}\ncode=$?\nset -- /proc/[0-9]*\nprintf '%s %s %s\\n' ${mark} "$code" "$#"\nprintf '%s\\n' ${mark} >&2\n`;
}
