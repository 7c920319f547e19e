import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { parseJSONRPCMessage } from "@modelcontextprotocol/client";
import { messageOf } from "../lib/errors.ts";
import { jsonTrouble } from "../lib/input-budget.ts";
import { killGroup } from "../process/exec.ts";
import { LONGEST_MESSAGE, MESSAGE_BUDGET } from "./message-budget.ts";

/** How many characters of a server's stderr are kept, to explain why it ended. */
const KEPT_ERRORS = 2_000;
/** How long a server may take to end after its stdin was closed. */
const GRACE_MS = 1_000;

/** How long to read what a server wrote before it ended. */
const LAST_WORDS_MS = 500;

/** The ending of a server that was stopped on purpose. */
export const STOPPED = "it was stopped";

export interface ProgramSpec {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: NodeJS.ProcessEnv;
}

/** A busy process runs its timers before it reads pending output. */
async function lastWords(): Promise<void> {
  await sleep(LAST_WORDS_MS);
  await setImmediate();
  await setImmediate();
}

/** A server that IO starts as a program, in its own process group, which ends with the connection. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  /** The SDK recognizes a program by its having both `stderr` and `pid`. */
  readonly stderr = null;
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }
  /** Why the server ended, if it has. */
  ending: string | undefined;

  readonly #spec: ProgramSpec;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #errors = "";

  constructor(spec: ProgramSpec) {
    this.#spec = spec;
  }

  /** The end of its stderr. */
  lastErrors(): string {
    return this.#errors.trim();
  }

  start(): Promise<void> {
    const { argv, cwd, env } = this.#spec;
    const [file, ...args] = argv;
    return new Promise((started, failed) => {
      const child = spawn(file, args, { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
      this.#child = child;
      child.once("error", (error) => {
        this.ending = messageOf(error);
        failed(error);
      });
      child.once("spawn", started);
      this.#ended = new Promise((ended) => {
        child.once("error", () => ended());
        const finish = (why: string) => {
          this.ending ??= why;
          child.stdout?.destroy();
          child.stderr?.destroy();
          this.onclose?.();
          ended();
        };
        child.once("exit", (code, signal) => {
          // Its child processes must end with it.
          killGroup(child.pid);
          const why = signal ? `it was ended by ${signal}` : `it ended with the exit code ${code}`;
          // Delivers its last output first. A process that left its group could hold the pipes open.
          void Promise.race([once(child, "close").catch(() => undefined), lastWords()]).then(() => finish(why));
        });
      });
      child.stdin?.on("error", (error) => this.onerror?.(error));
      const errors = new StringDecoder("utf8");
      child.stderr?.on("data", (chunk: Buffer) => {
        this.#errors = (this.#errors + errors.write(chunk)).slice(-KEPT_ERRORS);
      });
      this.#read(child);
    });
  }

  /** Reads messages from stdout, one per line. */
  #read(child: ChildProcess): void {
    const decoder = new StringDecoder("utf8");
    let pieces: string[] = [];
    let length = 0;
    child.stdout?.on("data", (chunk: Buffer) => {
      const [first = "", ...lines] = decoder.write(chunk).split("\n");
      for (const [index, piece] of [first, ...lines].entries()) {
        if (index > 0) {
          this.#receive(pieces.join(""));
          pieces = [];
          length = 0;
        }
        pieces.push(piece);
        length += piece.length;
        if (length > LONGEST_MESSAGE) return this.#giveUp(`it sent a message of more than ${LONGEST_MESSAGE / 1e6} MB`);
      }
    });
  }

  #receive(line: string): void {
    if (line.trim() === "" || this.ending !== undefined) return;
    const trouble = jsonTrouble(line, MESSAGE_BUDGET);
    if (trouble !== undefined) {
      this.#giveUp(`it sent a message that ${trouble}`);
      return;
    }
    try {
      this.onmessage?.(parseJSONRPCMessage(JSON.parse(line)));
    } catch (error) {
      // Many programs print a greeting to stdout, where only messages belong.
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #giveUp(why: string): void {
    this.ending ??= why;
    this.#child?.stdout?.removeAllListeners("data").resume();
    killGroup(this.#child?.pid);
  }

  send(message: JSONRPCMessage): Promise<void> {
    const input = this.#child?.stdin;
    if (!input || this.ending !== undefined) return Promise.reject(new Error("the server is not there any more"));
    return new Promise((sent, failed) => {
      // A program that has just ended has not said yet why.
      const fail = (error: Error) => void Promise.race([this.#ended, sleep(LAST_WORDS_MS)]).then(() => failed(error));
      input.write(`${JSON.stringify(message)}\n`, (error) => (error ? fail(error) : sent()));
    });
  }

  /** Closes stdin, waits a moment, then kills the whole process group. */
  async close(): Promise<void> {
    const child = this.#child;
    if (!child || child.pid === undefined) return;
    this.ending ??= STOPPED;
    child.stdin?.end();
    const timer = setTimeout(() => killGroup(child.pid), GRACE_MS);
    await this.#ended;
    clearTimeout(timer);
  }
}
