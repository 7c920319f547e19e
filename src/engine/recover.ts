import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { codeOf } from "../lib/errors.ts";
import type { Steer } from "../protocol/turns.ts";

const LogLine = z.looseObject({
  type: z.string(),
  id: z.string(),
  data: z
    .looseObject({
      content: z.string().optional(),
      model: z.string().optional(),
      messageId: z.string().optional(),
      toolCallId: z.string().optional(),
      requestId: z.string().optional(),
      toolRequests: z.array(z.looseObject({ toolCallId: z.string(), name: z.string(), arguments: z.unknown() })).optional(),
    })
    .default({}),
});
type LogLine = z.infer<typeof LogLine>;

/** A tool call that was asked for and not answered. */
export interface OpenCall {
  requestId: string;
  callId: string;
  tool: string;
  args: unknown;
}

/** How to go on with a turn that was cut off, by what the session's own log says of it. */
export type Recovery =
  /** The prompt never arrived. */
  | { kind: "send" }
  /** It was answered; only the news of it was lost. */
  | { kind: "answered"; text: string; tools: string[]; model: string | undefined }
  /** It was answered, and then something more was said that has not been heard. */
  | { kind: "say more" }
  /** The model has to go on from what is there. */
  | { kind: "continue" }
  /** Calls wait for their results. */
  | { kind: "answer calls"; calls: OpenCall[] }
  /** The last step is half recorded: it is taken back, and the model goes on from before it. */
  | { kind: "truncate"; eventId: string };

/** The way to go on, and the calls whose results the session holds already. */
export interface RecoveryPlan {
  recovery: Recovery;
  settled: ReadonlyMap<string, number>;
  /** Last words that stand, each said before something more was said into the turn. */
  before: readonly string[];
  /** What was said into the turn and is in the session. */
  heard: ReadonlySet<number>;
}

export interface InterruptedTurn {
  prompt: string;
  promptId?: string | undefined;
  previousPromptId?: string | undefined;
  /** What was said into it. */
  steers?: readonly Steer[];
}

/** The log file of a session in the runtime's home. */
export function sessionLog(folder: string, sessionId: string): string {
  return join(folder, "session-state", sessionId, "events.jsonl");
}

/** The names of the sessions that are on disk. */
export async function sessionNames(folder: string): Promise<string[]> {
  const found = await readdir(dirname(dirname(sessionLog(folder, "any")))).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  });
  // The runtime's own files begin with a dot.
  return found.filter((name) => !name.startsWith("."));
}

/** Reads the log of a session that no runtime holds, and tells how to go on. */
export function planRecovery(logFile: string, turn: InterruptedTurn): RecoveryPlan {
  const lines = readLog(logFile);
  const held = heldOf(lines, turn);
  const recovery = recoveryOf(lines, held, turn);
  const kept =
    recovery.kind === "truncate"
      ? lines.slice(
          0,
          lines.findIndex(({ id }) => id === recovery.eventId),
        )
      : lines;
  const settled = new Map<string, number>();
  for (const { type, data } of kept) {
    if (type === "tool.execution_complete" && data.toolCallId)
      settled.set(data.toolCallId, (settled.get(data.toolCallId) ?? 0) + 1);
  }
  const before = recovery.kind === "say more" ? [...held.before, lastWord(lines.slice(held.start)) ?? ""] : held.before;
  return { recovery, settled, before, heard: held.heard };
}

/** Whether a session's log can be read from its first line to its last; a last line may be cut off. */
export function isWhole(logFile: string): boolean {
  const lines = readFileSync(logFile, "utf8").split("\n");
  return lines.slice(0, -1).every((line) => {
    try {
      return line === "" || typeof JSON.parse(line) === "object";
    } catch {
      return false;
    }
  });
}

/** What a session holds of a turn. */
interface Held {
  /** Where its last prompt stands; -1 when the session holds nothing of the turn. */
  start: number;
  before: string[];
  heard: ReadonlySet<number>;
}

/** Goes back over what was said into the turn, newest first, to its prompt. */
function heldOf(lines: LogLine[], turn: InterruptedTurn): Held {
  const prompts = lines.flatMap((line, index) => (line.type === "user.message" ? [index] : []));
  const heard = new Set<number>();
  const before: string[] = [];
  for (let at = prompts.length - 1; at >= 0; at -= 1) {
    const index = prompts[at]!;
    const line = lines[index]!;
    const steer = turn.steers?.findLast((each) => !heard.has(each.seq) && isSteer(line, each));
    if (!steer) return isOurs(line, turn) ? { start: prompts.at(-1)!, before, heard } : NOTHING_HELD;
    heard.add(steer.seq);
    const word = lastWord(lines.slice(prompts[at - 1] ?? 0, index));
    if (word !== undefined) before.unshift(word);
  }
  return NOTHING_HELD;
}
const NOTHING_HELD: Held = { start: -1, before: [], heard: new Set() };

/** The last word of a part of a session; undefined where it ended with calls. */
function lastWord(lines: readonly LogLine[]): string | undefined {
  const last = lines.findLast((line) => line.type === "assistant.message");
  return (last?.data.toolRequests ?? []).length === 0 ? last?.data.content || undefined : undefined;
}

function isSteer(line: LogLine, { promptId, text }: Steer): boolean {
  return promptId === null ? line.data.content === text : (line.data.messageId ?? line.id) === promptId;
}

function recoveryOf(lines: LogLine[], { start, heard, before }: Held, { steers = [] }: InterruptedTurn): Recovery {
  if (start === -1) return { kind: "send" };

  const tail = lines.slice(start + 1);
  const last = tail.findLast((line) => line.type === "assistant.message");
  if (!last) return { kind: "continue" };
  const requests = last.data.toolRequests ?? [];
  const asked = tail
    .flatMap((line) => (line.type === "assistant.message" ? (line.data.toolRequests ?? []) : []))
    .map((call) => call.name);
  if (requests.length === 0) {
    if (!last.data.content) return { kind: "continue" };
    if (steers.length > heard.size) return { kind: "say more" };
    return { kind: "answered", text: [...before, last.data.content].join("\n\n"), tools: asked, model: last.data.model };
  }

  const after = tail.slice(tail.indexOf(last) + 1);
  const ids = (type: string, field: "toolCallId" | "requestId") =>
    new Set(after.filter((line) => line.type === type).map((line) => line.data[field]));
  const complete = ids("tool.execution_complete", "toolCallId");
  const open = requests.filter((call) => !complete.has(call.toolCallId));
  if (open.length === 0) return { kind: "continue" };

  const closed = ids("external_tool.completed", "requestId");
  const calls = open.flatMap((call) => {
    const requested = after.find((line) => line.type === "external_tool.requested" && line.data.toolCallId === call.toolCallId);
    const requestId = requested?.data.requestId;
    if (!requestId || closed.has(requestId)) return [];
    return [{ requestId, callId: call.toolCallId, tool: call.name, args: call.arguments }];
  });
  return calls.length === open.length ? { kind: "answer calls", calls } : { kind: "truncate", eventId: last.id };
}

function isOurs(line: LogLine, { prompt, promptId, previousPromptId }: InterruptedTurn): boolean {
  const id = line.data.messageId ?? line.id;
  if (promptId !== undefined) return id === promptId;
  return id !== previousPromptId && line.data.content === prompt;
}

/** A last line that was cut off in the middle of writing is left out. */
function readLog(file: string): LogLine[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => {
    try {
      return line ? [LogLine.parse(JSON.parse(line))] : [];
    } catch {
      // Half a line, or a kind of line that does not concern a turn.
      return [];
    }
  });
}
