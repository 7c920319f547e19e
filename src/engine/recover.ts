import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { codeOf } from "../lib/errors.ts";

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
}

export interface InterruptedTurn {
  prompt: string;
  promptId?: string | undefined;
  previousPromptId?: string | undefined;
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
  const recovery = recoveryOf(lines, turn);
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
  return { recovery, settled };
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

function recoveryOf(lines: LogLine[], turn: InterruptedTurn): Recovery {
  const start = lines.findLastIndex((line) => line.type === "user.message");
  const prompt = lines[start];
  if (!prompt || !isOurs(prompt, turn)) return { kind: "send" };

  const tail = lines.slice(start + 1);
  const last = tail.findLast((line) => line.type === "assistant.message");
  if (!last) return { kind: "continue" };
  const requests = last.data.toolRequests ?? [];
  const asked = tail
    .flatMap((line) => (line.type === "assistant.message" ? (line.data.toolRequests ?? []) : []))
    .map((call) => call.name);
  if (requests.length === 0)
    return last.data.content
      ? { kind: "answered", text: last.data.content, tools: asked, model: last.data.model }
      : { kind: "continue" };

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
