import { z } from "zod";
import { Mode } from "../home/safety-config.ts";
import { ChannelInfo } from "./channels.ts";
import { Message, MessageStatus } from "./messages.ts";
import { ClusterStatus } from "./workers.ts";

/** The response to every failed request. */
export const ApiError = z.object({ error: z.object({ code: z.string(), message: z.string() }) }).meta({ id: "Error" });
export type ApiError = z.infer<typeof ApiError>;

export const EngineInfo = z.object({
  kind: z.enum(["copilot", "provider", "ollama", "rehearsal"]),
  state: z.enum(["starting", "ready", "restarting", "stopped", "failed"]),
  model: z.string(),
  /** Why this engine and model were chosen. */
  why: z.string().default(""),
  notes: z.array(z.string()),
  /** The Copilot runtime: its version, once started, and whether this version of IO was tested with it. */
  runtime: z.object({ version: z.string().nullable(), tested: z.boolean() }),
  liveSessions: z.number().int(),
});

/** Whether the data folder's disk has room. While it is full, work waits. */
export const DiskInfo = z.object({
  state: z.enum(["ok", "full"]),
  since: z.string(),
  /** The problem and what to do, in a sentence. */
  detail: z.string().nullable(),
});
export type DiskInfo = z.infer<typeof DiskInfo>;

export const Status = z
  .object({
    version: z.string(),
    pid: z.number().int(),
    /** In seconds. */
    uptime: z.number(),
    home: z.string(),
    /** Whether the daemon was started for one piece of work and ends when idle. */
    endsWhenIdle: z.boolean().default(false),
    engine: EngineInfo,
    /** How much IO may do without asking, unless a conversation or squad has its own mode. */
    mode: Mode.optional(),
    queue: z.object({
      depth: z.number().int(),
      waiting: z.number().int(),
      running: z.number().int(),
      /** Replies and results that nobody has received yet. */
      owed: z.number().int(),
    }),
    counts: z.record(z.string(), z.number().int()),
    disk: DiskInfo.optional(),
    /** The enabled channels besides HTTP. */
    channels: z.array(ChannelInfo).default([]),
    /** Workers on other hosts; null if there is no cluster. */
    cluster: ClusterStatus.nullable().default(null),
    /** How long records are kept, and what was deleted since the start. */
    retention: z.object({
      limits: z.record(z.string(), z.number().int()),
      lastAt: z.string().nullable(),
      removed: z.record(z.string(), z.number().int()),
    }),
  })
  .meta({ id: "Status" });
export type Status = z.infer<typeof Status>;

export const MessageList = z.object({ items: z.array(Message), next: z.string().optional() });

export const Queued = z.object({ id: z.string(), status: MessageStatus });
export const Stopped = z.object({ messages: z.number().int(), tasks: z.number().int(), runs: z.number().int() });
export type Stopped = z.infer<typeof Stopped>;
