import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { CreateTerminalRequest, TerminalOutputResponse, WaitForTerminalExitResponse } from "@agentclientprotocol/sdk";

/** A terminal in the editor, and what has happened to it so far. */
export interface TestTerminal {
  id: string;
  request: CreateTerminalRequest;
  child: ChildProcess;
  output: string;
  isKilled: boolean;
  isReleased: boolean;
}

/** Editor terminals that really run their commands, outside any sandbox. */
export interface TestTerminals {
  all: TestTerminal[];
  /** If set, thrown instead of creating a terminal. */
  refusal?: Error;
  /** If set, the editor ignores requests to kill a command and never answers them. */
  isDeafToKill?: true;
  create: (request: CreateTerminalRequest) => { terminalId: string };
  output: (id: string) => TerminalOutputResponse;
  exit: (id: string) => Promise<WaitForTerminalExitResponse>;
  kill: (id: string) => Promise<object>;
  release: (id: string) => object;
}

export function createTestTerminals(): TestTerminals {
  const find = (id: string): TestTerminal => {
    const terminal = terminals.all.find((each) => each.id === id && !each.isReleased);
    if (!terminal) throw new Error(`there is no terminal ${id}`);
    return terminal;
  };
  const terminals: TestTerminals = {
    all: [],
    create(request) {
      if (terminals.refusal) throw terminals.refusal;
      const env = { ...process.env, ...Object.fromEntries((request.env ?? []).map(({ name, value }) => [name, value])) };
      const child = spawn(request.command, request.args ?? [], {
        ...{ cwd: request.cwd ?? undefined, env, stdio: ["ignore", "pipe", "pipe"] },
      });
      const terminal: TestTerminal = {
        ...{ id: `terminal-${terminals.all.length + 1}`, request, child, output: "", isKilled: false, isReleased: false },
      };
      // Terminals end every line with CRLF.
      const add = (chunk: Buffer) => {
        terminal.output += chunk.toString("utf8").replaceAll("\n", "\r\n");
      };
      child.stdout!.on("data", add);
      child.stderr!.on("data", add);
      terminals.all.push(terminal);
      return { terminalId: terminal.id };
    },
    output(id) {
      const { output, request } = find(id);
      const most = request.outputByteLimit ?? output.length;
      return { output: output.slice(-most), truncated: output.length > most };
    },
    async exit(id) {
      const { child } = find(id);
      if (child.exitCode === null && child.signalCode === null) {
        // A child of the killed command may keep its output open.
        await Promise.race([once(child, "close"), once(child, "exit").then(() => sleep(100))]);
      }
      return { exitCode: child.exitCode, signal: child.signalCode };
    },
    async kill(id) {
      const terminal = find(id);
      terminal.isKilled = true;
      if (terminals.isDeafToKill) return new Promise<never>(() => {});
      terminal.child.kill("SIGKILL");
      return {};
    },
    release(id) {
      const terminal = find(id);
      terminal.isReleased = true;
      terminal.child.kill("SIGKILL");
      return {};
    },
  };
  return terminals;
}
