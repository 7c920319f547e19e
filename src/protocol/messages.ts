import { z } from "zod";
import { WaitsFor } from "./approvals.ts";
import { CallEnd } from "./calls.ts";
import { Usage } from "./usage.ts";

/** Where a message came from, which is where its answer goes. */
export const Source = z.discriminatedUnion("channel", [
  z.object({
    channel: z.literal("telegram"),
    chatId: z.number().int(),
    /** The topic, if the chat has topics. */
    threadId: z.number().int().optional(),
  }),
  z.object({ channel: z.enum(["tui", "web", "api", "mcp", "openai", "acp"]), folder: z.string().optional() }),
  z.object({ channel: z.literal("background"), about: z.string() }),
  z.object({ channel: z.literal("schedule"), name: z.string() }),
]);
export type Source = z.infer<typeof Source>;

export const Conversation = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    "1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit",
  );

export const MessageStatus = z.enum(["queued", "running", "done", "failed", "cancelled"]);
export type MessageStatus = z.infer<typeof MessageStatus>;

export const Failure = z.object({ code: z.string(), message: z.string() });
export type Failure = z.infer<typeof Failure>;

/** How a message was answered: by IO itself, or with which tools, tasks and runs. */
export const Route = z.object({
  answered: z.enum(["directly", "with tools", "delegated", "not yet"]),
  tools: z.array(z.string()),
  tasks: z.array(z.string()),
  runs: z.array(z.string()),
  /** The models that answered; missing in records of earlier versions. */
  models: z.array(z.string()).optional(),
  /** Why another than the default model was used. */
  modelReason: z.string().optional(),
});
export type Route = z.infer<typeof Route>;

/** A file attached to a message. */
export const Attachment = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.string().describe("by what the file holds, whatever its name says"),
    size: z.number().int().describe("in bytes"),
  })
  .meta({ id: "Attachment" });
export type Attachment = z.infer<typeof Attachment>;

/** What a person, a schedule or a finished task says to IO, and the result. */
export const Message = z
  .object({
    id: z.string(),
    conversation: z.string(),
    source: Source,
    text: z.string(),
    attachments: z.array(Attachment).default([]),
    /** Text that was added to its running turn. */
    steered: z.array(z.object({ text: z.string(), createdAt: z.string() })).default([]),
    status: MessageStatus,
    /** Missing unless it runs and waits for a person. */
    waitsFor: WaitsFor.optional(),
    reply: z.string().nullable(),
    partial: z.boolean(),
    error: Failure.nullable(),
    route: Route,
    attempts: z.number().int(),
    createdAt: z.string(),
    startedAt: z.string().nullable(),
    finishedAt: z.string().nullable(),
    usage: Usage,
  })
  .meta({ id: "Message" });
export type Message = z.infer<typeof Message>;

/** A file before and after an edit; null if it did not exist. */
export const FileEdit = z.object({ path: z.string(), before: z.string().nullable(), after: z.string() });
export type FileEdit = z.infer<typeof FileEdit>;

/** A tool call, as far as its events tell. */
export const ToolUse = z.object({
  tool: z.string(),
  state: z.enum(["started", ...CallEnd.options]),
  callId: z.string().optional(),
  /** A one-line summary of the arguments. */
  args: z.string().optional(),
  /** Its arguments as redacted JSON, unless they are long. */
  input: z.string().optional(),
  /** The end of its output. */
  output: z.string().optional(),
  /** Set when a command has ended; null if a signal ended it. */
  exitCode: z.number().int().nullable().optional(),
  /** Set when an edit has ended, if it is small. */
  diff: FileEdit.optional(),
});
export type ToolUse = z.infer<typeof ToolUse>;

/** What a running turn has said and done up to an event. */
export const MessageProgress = z
  .object({
    id: z.string(),
    text: z.string(),
    tools: z.array(ToolUse),
    upTo: z.number().int(),
  })
  .meta({ id: "MessageProgress" });
export type MessageProgress = z.infer<typeof MessageProgress>;

export const NewMessage = z.strictObject({
  text: z.string().trim().min(1, "a message needs some text"),
  conversation: Conversation.default("main"),
  source: z.enum(["tui", "web", "api", "mcp", "acp"]).default("api"),
  idempotencyKey: z.string().min(1).max(200).optional(),
  attachments: z.array(z.string().max(100)).max(10).optional().describe("ids of files that were sent before (POST /api/files)"),
  folder: z
    .string()
    .min(1)
    .max(4_096)
    .regex(/^(?:\/|[A-Za-z]:[\\/])/, "a whole path")
    .optional()
    .describe("where the person stands: relative paths of tools stand there too"),
});
export type NewMessage = z.input<typeof NewMessage>;

/** New text for a waiting message or a running turn. */
export const Words = NewMessage.pick({ text: true });

/** What a chat shows for a message without an answer; undefined if it was answered. */
export function shownFailure({ status, error }: Message): string | undefined {
  if (status === "cancelled") return "(cancelled)";
  return status === "failed" ? `Sorry, I encountered an error: ${error?.message ?? "nobody knows which."}` : undefined;
}

/** A message that matches a search, with an excerpt. */
export const MessageHit = z.object({ id: z.string(), conversation: z.string(), createdAt: z.string(), snippet: z.string() });
export type MessageHit = z.infer<typeof MessageHit>;
