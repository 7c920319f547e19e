import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import { quotedForShell } from "../lib/invocation.ts";
import { isFolder } from "../lib/is-folder.ts";
import { captureOutput, type ExecResult, killGroup } from "./exec.ts";
import type { SandboxProfile, Wrap } from "./sandbox.ts";

/** A command for a persistent shell. */
export interface ShellCommand {
  argv: readonly [string, ...string[]];
  cwd: string;
  /** The sandbox's working folder. Commands with the same folder, profile and environment can share a shell. */
  place: string;
  profile: SandboxProfile;
  env: NodeJS.ProcessEnv;
  /** Extra variables for this command. */
  also?: NodeJS.ProcessEnv | undefined;
  input?: string | undefined;
  signal?: AbortSignal | undefined;
  deadlineMs: number;
  maxOutput?: number | undefined;
}

/**
 * Persistent shells inside the sandbox that run commands one after another, which saves a new sandbox and a copy of the
 * daemon's memory map for each. A shell runs one command at a time, and is reused only if that command left no process
 * behind and the next one needs exactly the same sandbox.
 */
export interface Shells {
  /** Runs a command; undefined if it must be started directly (no sandbox, or too long). Rejects only if the sandbox does. */
  run(command: ShellCommand): Promise<ExecResult | undefined>;
  /** Ends idle shells; busy ones end with their commands. */
  close(): void;
}

const SHELL = "/bin/sh";
const IDLE_MS = 5_000;
const MAX_IDLE = 8;
/** The shell, and the init process of its PID namespace, which waits for it. */
const IDLE_PROCESSES = 2;
/** A sandbox mounts foreign folders, such as those of key agents in /tmp, which may vanish before it starts. Nothing ran then. */
const SANDBOX_FAILED = /^bwrap: Can't (?:mkdir|create file|find source path|get type of source)/;
const MAX_TRIES = 3;
/** The largest write that every system passes to a program at once. */
const MAX_LENGTH = 100_000;

interface Shell {
  child: ChildProcessWithoutNullStreams;
  /** Its program, arguments and environment. */
  key: string;
  timer?: NodeJS.Timeout;
}

export function createShells(wrap: Wrap): Shells {
  const idle: Shell[] = [];
  let closed = false;
  let lastStart = Promise.resolve();

  /** Starting a process blocks the event loop for milliseconds, so other work runs between two starts. */
  const nextStart = (): Promise<void> => {
    lastStart = lastStart.then(() => new Promise((go) => setImmediate(go)));
    return lastStart;
  };

  const end = (shell: Shell): void => {
    clearTimeout(shell.timer);
    const at = idle.indexOf(shell);
    if (at >= 0) idle.splice(at, 1);
    killGroup(shell.child.pid);
  };

  function keep(shell: Shell): void {
    if (closed || idle.length >= MAX_IDLE) {
      end(shell);
      return;
    }
    shell.timer = setTimeout(() => end(shell), IDLE_MS);
    shell.timer.unref();
    setKeepAlive(shell, false);
    idle.push(shell);
  }

  function takeIdle(key: string): Shell | undefined {
    const at = idle.findLastIndex((each) => each.key === key);
    if (at < 0) return undefined;
    const shell = idle.splice(at, 1)[0]!;
    clearTimeout(shell.timer);
    setKeepAlive(shell, true);
    return shell;
  }

  function begin([file, ...rest]: [string, ...string[]], { place, env }: ShellCommand, key: string): Shell {
    const child = spawn(file, rest, { cwd: place, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    const begun: Shell = { child, key };
    // A dead shell is never chosen; whoever waits for its answer gets an error.
    child.once("exit", () => end(begun));
    child.on("error", () => end(begun));
    child.stdin.on("error", () => undefined);
    return begun;
  }

  return {
    async run(command) {
      const { argv, cwd, place, profile, env, also = {}, input = "" } = command;
      const words = [...argv, cwd, input, ...Object.values(also).map((value) => value ?? "")];
      const length = words.reduce((sum, word) => sum + word.length, 0);
      if (length > MAX_LENGTH || words.some((word) => word.includes("\0")) || !isFolder(cwd)) return undefined;
      for (let tries = 1; ; tries += 1) {
        const [file, ...rest] = await wrap([SHELL, "-s"], place, profile);
        if (file === SHELL) return undefined;
        const key = JSON.stringify([file, rest, env]);
        const waiting = takeIdle(key);
        if (!waiting) await nextStart();
        const shell = waiting ?? begin([file, ...rest], command, key);
        const { result, isAlone } = await runIn(shell.child, command);
        if (isAlone) keep(shell);
        else end(shell);
        if (isAlone || waiting || tries >= MAX_TRIES || !SANDBOX_FAILED.test(result.stderr)) return result;
      }
    },
    close() {
      closed = true;
      for (const shell of [...idle]) end(shell);
    },
  };
}

/** Sets whether this process keeps the daemon alive. */
function setKeepAlive({ child }: Shell, wait: boolean): void {
  const pipes = [child.stdin, child.stdout, child.stderr].filter((pipe) => pipe instanceof Socket);
  for (const each of [child, ...pipes]) wait ? each.ref() : each.unref();
}

/** Runs one command in a shell and reads its output to the end. */
function runIn(child: ChildProcessWithoutNullStreams, command: ShellCommand): Promise<{ result: ExecResult; isAlone: boolean }> {
  const { signal, deadlineMs, maxOutput } = command;
  const mark = randomBytes(16).toString("hex");
  const captured = captureOutput(maxOutput);
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
      done({ result: captured.result(code, ending), isAlone });
    };
    const onError = (error: Error) => {
      captured.addError(error.message);
      ending = "not-started";
      finish(null, false);
    };
    let open = 2;
    const onMark = (rest: string) => {
      last ||= rest;
      open -= 1;
      if (open > 0) return;
      const [code = "", processes = ""] = last.split(" ");
      finish(Number(code), Number(processes) === IDLE_PROCESSES);
    };
    const out = splitAtMark(mark, captured.out, onMark);
    const err = splitAtMark(mark, captured.err, () => onMark(""));
    child.stdout.on("data", out.take);
    child.stderr.on("data", err.take);
    child.once("close", onDeath);
    child.once("error", onError);
    if (signal?.aborted) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    child.stdin.write(scriptOf(command, mark));
  });
}

/** Passes on the output before a mark, then the rest of the mark's line. `rest` passes on what is left without a mark. */
function splitAtMark(mark: string, onOutput: (chunk: Buffer) => unknown, onMark: (line: string) => void) {
  let buffered: Buffer = Buffer.alloc(0);
  const pass = (length: number) => {
    if (length > 0) onOutput(buffered.subarray(0, length));
    buffered = buffered.subarray(length);
  };
  return {
    take(chunk: Buffer): void {
      buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
      const at = buffered.indexOf(mark);
      // The mark may be split between two chunks.
      pass(at < 0 ? Math.max(0, buffered.length - mark.length) : at);
      const lineEnd = at < 0 ? -1 : buffered.indexOf("\n");
      if (lineEnd < 0) return;
      const line = buffered.subarray(mark.length, lineEnd).toString("latin1").trim();
      buffered = Buffer.alloc(0);
      onMark(line);
    },
    rest: () => pass(buffered.length),
  };
}

/** The script for the shell: runs the command in a subshell, then prints its exit code and the number of processes. */
function scriptOf({ argv, cwd, also = {}, input }: ShellCommand, mark: string): string {
  const set = Object.entries(also).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quotedForShell(value)}`]));
  const exported = set.length > 0 ? `export ${set.join(" ")} && ` : "";
  const subshell = `(cd ${quotedForShell(cwd)} && ${exported}exec ${argv.map(quotedForShell).join(" ")})`;
  const fed = input === undefined ? `${subshell} </dev/null` : `printf %s ${quotedForShell(input)} | ${subshell}`;
  return `${fed}\ncode=$?\nset -- /proc/[0-9]*\nprintf '%s %s %s\\n' ${mark} "$code" "$#"\nprintf '%s\\n' ${mark} >&2\n`;
}
