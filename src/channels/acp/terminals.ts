import { setTimeout as sleep } from "node:timers/promises";
import {
  type AgentContext,
  type CreateTerminalRequest,
  type CreateTerminalResponse,
  methods,
  type TerminalOutputResponse,
  type WaitForTerminalExitResponse,
} from "@agentclientprotocol/sdk";
import { messageOf } from "../../lib/errors.ts";
import { oneLine } from "../../lib/quoted.ts";
import {
  TERMINAL_BYTES,
  type TerminalCommand,
  type TerminalEnd,
  type TerminalOrders,
  type TerminalReport,
} from "../../protocol/editor-terminal.ts";
import type { EventData } from "../../protocol/events.ts";
import { segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";

export interface TerminalsDeps {
  access: Pick<AcpAccess, "request" | "note">;
  client: Pick<AgentContext, "request">;
  session: string;
  /** The daemon's route for what it asks editors. */
  path: string;
  /** Shows the call in the terminal. */
  show: (call: Call, terminalId: string) => Promise<void>;
}

type Call = NonNullable<EventData<"editor.asked">["terminal"]>;

/** Between two reports to the daemon, which also tell that this process is alive. */
const BEAT_MS = 500;
/** A daemon that does not answer for this long is gone, and wants nothing any more. */
const SILENCE_MS = 10_000;
/** How long an editor may take to kill a command, and to hand over its output. */
const EDITOR_MS = 1_500;
const MOST_PRINTED = 8_000;

/** Runs commands in terminals of the editor, as the daemon wants it. */
export function createTerminals({ access, client, session, path, show }: TerminalsDeps) {
  const ask = <T>(method: string, terminalId: string) => client.request<T>(method, { sessionId: session, terminalId });

  async function create({ program, args, cwd, env }: TerminalCommand): Promise<string> {
    const variables = Object.entries(env).map(([name, value]) => ({ name, value }));
    const request: CreateTerminalRequest = {
      ...{ sessionId: session, command: program, args, cwd, env: variables, outputByteLimit: TERMINAL_BYTES },
    };
    return (await client.request<CreateTerminalResponse>(methods.client.terminal.create, request)).terminalId;
  }

  /** Runs the command until it ends or is to stop. */
  async function follow(call: Call, run: TerminalCommand, beats: Beats): Promise<TerminalEnd> {
    let terminalId: string;
    try {
      terminalId = await create(run);
    } catch (error) {
      return { how: "not-started", why: oneLine(messageOf(error), 300) };
    }
    const outputOf = async () =>
      inTime(ask<TerminalOutputResponse>(methods.client.terminal.output, terminalId), { output: "", truncated: true });
    try {
      const exit = ask<WaitForTerminalExitResponse>(methods.client.terminal.waitForExit, terminalId);
      exit.catch(() => undefined);
      await show(call, terminalId);
      beats.watch(() => outputOf().then(({ output }) => output));
      if (await Promise.race([exit.then(() => false), beats.stopped.then(() => true)])) {
        await inTime(ask(methods.client.terminal.kill, terminalId), undefined);
        if (!(await inTime(exit, undefined))) return { how: "lost", why: "the editor did not stop the command" };
      }
      const { exitCode } = await exit;
      const { output, truncated } = await outputOf();
      const code = Number.isInteger(exitCode) ? exitCode! : null;
      const isCut = truncated || output.length > TERMINAL_BYTES;
      return { how: "exited", code, output: output.slice(-TERMINAL_BYTES), isCut };
    } catch (error) {
      return { how: "lost", why: oneLine(messageOf(error), 300) };
    } finally {
      void ask(methods.client.terminal.release, terminalId).catch(() => undefined);
    }
  }

  return {
    /** Runs the command of a call, unless another process has it. Never rejects. */
    async run(id: string, call: Call): Promise<void> {
      const report = (word: TerminalReport) => access.request<TerminalOrders>("POST", `${path}/${segment(id)}/terminal`, word);
      try {
        const { run } = await report({});
        if (!run) return;
        const beats = createBeats(report);
        const end = await follow(call, run, beats);
        beats.end();
        await report({ end });
      } catch (error) {
        access.note(`A command in the terminal could not be reported: ${messageOf(error)}`);
      }
    },
  };
}

type Beats = ReturnType<typeof createBeats>;

/** Reports what a command prints, and that this process is alive, until the daemon wants it to stop. */
function createBeats(report: (word: TerminalReport) => Promise<TerminalOrders>) {
  let isOver = false;
  let read: (() => Promise<string>) | undefined;
  let seen = "";
  let printed = "";
  let isReading = false;

  function look(): void {
    if (isReading || !read) return;
    isReading = true;
    void read()
      .then((output) => {
        printed = (printed + addedTo(seen, output)).slice(-MOST_PRINTED);
        seen = output;
      })
      .catch(() => undefined)
      .finally(() => {
        isReading = false;
      });
  }
  async function beat(): Promise<void> {
    let heard = performance.now();
    for (;;) {
      await sleep(BEAT_MS);
      if (isOver) return;
      look();
      const piece = printed;
      printed = "";
      const orders = await report(piece === "" ? {} : { printed: piece }).catch(() => undefined);
      if (orders) heard = performance.now();
      if (orders ? orders.stop : performance.now() - heard > SILENCE_MS) return;
    }
  }
  const beating = beat();
  return {
    /** Resolves when the command is to stop. */
    stopped: beating.then(() => (isOver ? new Promise<never>(() => {}) : undefined)),
    watch(output: () => Promise<string>): void {
      read = output;
    },
    end(): void {
      isOver = true;
    },
  };
}

/** What was printed since, as far as the editor still has it. */
function addedTo(seen: string, output: string): string {
  if (output.startsWith(seen)) return output.slice(seen.length);
  const tail = seen.slice(-200);
  const at = output.lastIndexOf(tail);
  return at < 0 ? output : output.slice(at + tail.length);
}

/** The answer of an editor, or the alternative if it fails or takes too long. */
function inTime<T, U>(work: Promise<T>, otherwise: U): Promise<T | U> {
  return Promise.race([work.catch(() => otherwise), sleep(EDITOR_MS, otherwise, { ref: false })]);
}
