import { stripVTControlCharacters } from "node:util";
import { z } from "zod";
import { oneLine } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import type { BackgroundCommand, BackgroundCommands, OutputPart } from "../process/background-commands.ts";
import { type Tool, ToolError, tool } from "./tool.ts";

export interface Holders {
  /** The holder with which the commands of a message, task or step end: its conversation, or itself. */
  holderOf: (owner: string) => string;
}

export interface BackgroundShellDeps extends Holders {
  commands: BackgroundCommands;
}

const LIMIT = 8_000;
export const TOO_MANY =
  "shell was not run: as many commands run in the background already as may. Stop one with shell_stop; shell_output without an id lists them.";

/** Reads the output of background commands, and lists them. */
export function createShellOutput({ commands, holderOf }: BackgroundShellDeps): Tool {
  return tool({
    name: "shell_output",
    onHost: true,
    description: "Read what a background command printed: its last lines, or those from a line on. Without id: list them.",
    schema: z.object({
      id: z.string().max(64).optional(),
      from: z.number().int().min(1).optional().describe("first line"),
      wait_secs: z.number().int().min(0).max(60).default(0).describe("wait so long for more"),
    }),
    kind: "read",
    deadlineMs: 70_000,
    async run({ id, from, wait_secs }, { owner, signal }) {
      const holder = holderOf(owner);
      if (id === undefined) return listOf(commands.list(holder));
      const found = commands.find(holder, id) ?? missing(id);
      const known = commands.read(id, 1).total;
      const isWanted = (total: number) => (from === undefined ? total > known : total >= from);
      const hasNews = () => found.result !== undefined || isWanted(commands.read(id, 1).total);
      const until = performance.now() + wait_secs * 1_000;
      while (!hasNews() && !signal.aborted && performance.now() < until)
        await commands.changed(id, until - performance.now(), signal);
      const part = from === undefined ? tailOf(commands.read(id, 1)) : headOf(commands.read(id, from));
      return `${stateOf(found)}\n${tellPart(part)}`;
    },
  });
}

export function createShellStop({ commands, holderOf }: BackgroundShellDeps): Tool {
  return tool({
    name: "shell_stop",
    onHost: true,
    description: "Stop a background command with everything it started.",
    schema: z.object({ id: z.string().max(64) }),
    kind: "effect",
    deadlineMs: 20_000,
    async run({ id }, { owner }) {
      const found = commands.find(holderOf(owner), id) ?? missing(id);
      if (found.result) return `It had ended before. ${stateOf(found)}`;
      await commands.stop(id);
      return `Stopped, with everything it had started. ${stateOf(found)}\n${tellPart(tailOf(commands.read(id, 1), 2_000))}`;
    },
  });
}

/** What the model reads when a command stays in the background. */
export function tellStarted(command: BackgroundCommand, output: OutputPart): string {
  return `${command.id} runs in the background. Read on with shell_output, end it with shell_stop. Up to now:\n${tellPart(tailOf(output))}`;
}

function missing(id: string): never {
  throw new ToolError(
    `No background command of this work is called ${JSON.stringify(id)}. Commands end when IO is stopped. shell_output without an id lists those that are known.`,
  );
}

function listOf(all: readonly BackgroundCommand[]): string {
  return all.length === 0 ? "No command runs in the background." : all.map(stateOf).join("\n");
}

function stateOf({ id, command, startedAt, result }: BackgroundCommand): string {
  const said = `$ ${oneLine(command, 200)}`;
  if (!result) return `${id} has been running for ${Math.round((Date.now() - startedAt.getTime()) / 1_000)} s: ${said}`;
  const how =
    result.ending === "aborted"
      ? "was stopped"
      : result.ending === "not-started"
        ? "could not be started"
        : `ended, exit code: ${result.code ?? "none (ended by a signal)"}`;
  return `${id} ${how}, after ${Math.round(result.durationMs / 100) / 10} s: ${said}`;
}

/** As many of the first lines as fit. */
function headOf(part: OutputPart): OutputPart {
  let room = LIMIT;
  const end = part.lines.findIndex((line) => {
    room -= line.length + 1;
    return room < 0;
  });
  return end < 0 ? part : { ...part, lines: part.lines.slice(0, Math.max(1, end)) };
}

/** As many of the last lines as fit. */
function tailOf(part: OutputPart, limit = LIMIT): OutputPart {
  let room = limit;
  const before = part.lines.findLastIndex((line) => {
    room -= line.length + 1;
    return room < 0;
  });
  const start = Math.min(before + 1, Math.max(0, part.lines.length - 1));
  return { ...part, lines: part.lines.slice(start), from: part.from + start };
}

function tellPart({ lines, from, total, oldest }: OutputPart): string {
  if (total === 0) return "It has printed nothing.";
  if (lines.length === 0) return `Nothing from line ${from} on: it has printed ${total} lines.`;
  const last = from + lines.length - 1;
  const gone = oldest > 1 ? ` Lines before ${oldest} are no longer kept.` : "";
  return `${asData(stripVTControlCharacters(lines.join("\n")))}\n[lines ${from} to ${last} of ${total}.${gone}]`;
}
