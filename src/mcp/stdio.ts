import { type ChildProcess, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { parseJSONRPCMessage } from "@modelcontextprotocol/client";
import { messageOf } from "../lib/errors.ts";
import { jsonTrouble } from "../lib/input-budget.ts";
import { killGroup } from "../process/exec.ts";
import { LONGEST_MESSAGE, MESSAGE_BUDGET } from "./message-budget.ts";

/** How much of what a server prints as errors is kept, for whoever asks why it ended. */
const KEPT_ERRORS = 2_000;
/** How long a server may take to end once its input has. */
const GRACE_MS = 1_000;

/** How one ended that was told to. */
export const STOPPED = "it was stopped";

export interface ProgramSpec {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: NodeJS.ProcessEnv;
}

/** A server that is a program of ours: a process group of its own, which ends with the connection. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  /** That it has both of these tells the SDK that it speaks to a program. */
  readonly stderr = null;
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }
  /** Why it ended, if it did so by itself. */
  ending: string | undefined;

  readonly #spec: ProgramSpec;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #errors = "";

  constructor(spec: ProgramSpec) {
    this.#spec = spec;
  }

  /** The last that it printed as errors. */
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
        child.once("exit", (code, signal) => {
          this.ending ??= signal ? `it was ended by ${signal}` : `it ended with the exit code ${code}`;
          // What it started must not go on without it.
          killGroup(child.pid);
          // What it said last is heard first.
          setImmediate(() => {
            child.stdout?.destroy();
            child.stderr?.destroy();
            this.onclose?.();
            ended();
          });
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

  /** Messages are lines. */
  #read(child: ChildProcess): void {
    const decoder = new StringDecoder("utf8");
    let pieces: string[] = [];
    let length = 0;
    child.stdout?.on("data", (chunk: Buffer) => {
      const [first = "", ...lines] = decoder.write(chunk).split("\n");
      for (const [index, piece] of [first, ...lines].entries()) {
        if (index > 0) {
          this.#hear(pieces.join(""));
          pieces = [];
          length = 0;
        }
        pieces.push(piece);
        length += piece.length;
        if (length > LONGEST_MESSAGE) return this.#giveUp(`it sent a message of more than ${LONGEST_MESSAGE / 1e6} MB`);
      }
    });
  }

  #hear(line: string): void {
    if (line.trim() === "" || this.ending !== undefined) return;
    const trouble = jsonTrouble(line, MESSAGE_BUDGET);
    if (trouble !== undefined) {
      this.#giveUp(`it sent a message that ${trouble}`);
      return;
    }
    try {
      this.onmessage?.(parseJSONRPCMessage(JSON.parse(line)));
    } catch (error) {
      // Many programs print a greeting where only messages belong.
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
      input.write(`${JSON.stringify(message)}\n`, (error) => (error ? failed(error) : sent()));
    });
  }

  /** Ends the input and gives it a moment, then ends the whole process group. */
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
