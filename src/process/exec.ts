import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { codeOf, messageOf } from "../lib/errors.ts";

export interface ExecOptions {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Kills the program and all its children. */
  signal?: AbortSignal;
  deadlineMs?: number;
  input?: string;
  /** How many characters of output are kept: half from the beginning, half from the end. */
  maxOutput?: number;
  /** Receives the complete output. */
  outputFile?: string;
  onOutput?: (chunk: string) => void;
}

export interface ExecResult {
  /** The exit code; null if a signal ended the program. */
  code: number | null;
  ending: "exited" | "deadline" | "aborted" | "not-started";
  /** Standard output and error in order of arrival, with the middle left out if they are long. */
  output: string;
  /** Standard output alone, shortened in the same way. */
  stdout: string;
  /** Standard error alone, shortened in the same way. */
  stderr: string;
  bytes: number;
  sha256: string;
  durationMs: number;
}

/** Runs a program with an argument list in its own process group. Never rejects: a failed program is a result. */
export function exec(file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
  const { cwd, env, signal, deadlineMs, input, maxOutput, outputFile, onOutput } = options;
  const started = performance.now();
  const captured = captureOutput(maxOutput);
  let ending: ExecResult["ending"] = "exited";

  return new Promise((done) => {
    let fullOutput: number | undefined;
    let child: ChildProcess;
    try {
      if (outputFile !== undefined) fullOutput = openSync(outputFile, "w", 0o600);
      child = spawn(file, args, {
        cwd,
        env: env ?? process.env,
        detached: true,
        stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      });
    } catch (error) {
      if (fullOutput !== undefined) closeSync(fullOutput);
      done(notStarted(whyNotStarted(error, file, cwd), performance.now() - started));
      return;
    }

    const closePipes = (inMs: number) => {
      const close = () => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      };
      setTimeout(() => afterReading(close), inMs).unref();
    };
    const end = (why: ExecResult["ending"]) => {
      if (ending !== "exited") return;
      ending = why;
      killGroup(child.pid);
      // A grandchild that left the group may hold the pipes open. Do not wait for its output.
      closePipes(500);
    };
    const onAbort = () => end("aborted");
    const timer = deadlineMs === undefined ? undefined : setTimeout(() => end("deadline"), deadlineMs);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });

    const finish = (code: number | null) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      if (fullOutput !== undefined) closeSync(fullOutput);
      killGroup(child.pid);
      done(captured.result(code, ending));
    };
    const take = (decode: (chunk: Buffer) => string) => (chunk: Buffer) => {
      if (fullOutput !== undefined) writeSync(fullOutput, chunk);
      const text = decode(chunk);
      onOutput?.(text);
    };
    child.stdout?.on("data", take(captured.out));
    child.stderr?.on("data", take(captured.err));
    child.once("error", (error) => {
      ending = "not-started";
      captured.addError(whyNotStarted(error, file, cwd));
      finish(null);
    });
    let exitCode: number | null = null;
    child.once("exit", (code) => {
      exitCode = code;
      // Background children of a finished command keep its pipes open: wait briefly, then close.
      closePipes(250);
    });
    child.once("close", () => {
      if (ending !== "not-started") finish(exitCode);
    });
    if (input !== undefined) {
      child.stdin?.on("error", () => {
        // The program closed its input early; its exit code tells why.
      });
      child.stdin?.end(input);
    }
  });
}

/** A busy process runs its timers before it reads pending output; waits until that has been read. */
function afterReading(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

/** The result of a program that was never started. */
export function notStarted(why: string, durationMs = 0): ExecResult {
  const sha256 = createHash("sha256").digest("hex");
  return { code: null, ending: "not-started", output: why, stdout: "", stderr: why, bytes: 0, sha256, durationMs };
}

/** The system's message, or our own where it is missing or unclear. */
function whyNotStarted(error: unknown, file: string, cwd: string | undefined): string {
  const code = codeOf(error);
  if (code === "ENOENT" && cwd !== undefined && !existsSync(cwd)) return `the folder ${cwd} does not exist (ENOENT)`;
  if (code === "ENOTDIR" && cwd !== undefined) return `${cwd} is not a folder (ENOTDIR)`;
  if (code === "E2BIG") return `${file} was given more arguments, or longer ones, than this system takes (E2BIG)`;
  if (code === "ERR_INVALID_ARG_VALUE") return `${file} was given a NUL character, which no argument can hold`;
  return messageOf(error);
}

/** Captures a program's output, with its size and hash. */
export function captureOutput(maxOutput = 100_000) {
  const started = performance.now();
  const both = createClip(maxOutput);
  const out = createClip(maxOutput);
  const err = createClip(maxOutput);
  const hash = createHash("sha256");
  let bytes = 0;
  const createReader = (clip: Clip) => {
    const decoder = new StringDecoder("utf8");
    return (chunk: Buffer): string => {
      bytes += chunk.length;
      hash.update(chunk);
      const text = decoder.write(chunk);
      both.add(text);
      clip.add(text);
      return text;
    };
  };
  return {
    out: createReader(out),
    err: createReader(err),
    /** Adds a message of our own to its standard error. */
    addError(why: string): void {
      both.add(why);
      err.add(why);
    },
    result: (code: number | null, ending: ExecResult["ending"]): ExecResult => ({
      ...{ code, ending, output: both.text(), stdout: out.text(), stderr: err.text(), bytes },
      sha256: hash.digest("hex"),
      durationMs: performance.now() - started,
    }),
  };
}

/** Kills a whole process group. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is already gone.
  }
}

interface Clip {
  add(text: string): void;
  text(): string;
}

/** Keeps the beginning and end of an unbounded text. */
function createClip(limit: number): Clip {
  const half = Math.floor(limit / 2);
  let head = "";
  let tail = "";
  let dropped = 0;
  return {
    add(text) {
      const room = half - head.length;
      if (room > 0) head += text.slice(0, room);
      const rest = room > 0 ? text.slice(room) : text;
      tail += rest;
      if (tail.length > half) {
        dropped += tail.length - half;
        tail = tail.slice(-half);
      }
    },
    text: () => (dropped === 0 ? head + tail : `${head}\n… ${dropped} characters left out …\n${tail}`),
  };
}
