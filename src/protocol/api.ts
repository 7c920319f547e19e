import { z } from "zod";
import { Mode } from "../home/safety-config.ts";
import { ChannelInfo } from "./channels.ts";
import { Message, MessageStatus } from "./messages.ts";
import { ClusterStatus } from "./workers.ts";

/** How every failed request is answered. */
export const ApiError = z.object({ error: z.object({ code: z.string(), message: z.string() }) }).meta({ id: "Error" });
export type ApiError = z.infer<typeof ApiError>;

export const EngineInfo = z.object({
  kind: z.enum(["copilot", "provider", "ollama", "rehearsal"]),
  state: z.enum(["starting", "ready", "restarting", "stopped", "failed"]),
  model: z.string(),
  /** Why this engine and model serve, in words. */
  why: z.string().default(""),
  notes: z.array(z.string()),
  /** The Copilot runtime: its version once it has started, and whether this version of IO was tested with it. */
  runtime: z.object({ version: z.string().nullable(), tested: z.boolean() }),
  liveSessions: z.number().int(),
});

/** Whether the disk of the data folder has room. While it has none, work waits. */
export const DiskInfo = z.object({
  state: z.enum(["ok", "full"]),
  since: z.string(),
  /** What is the matter and what to do, in a sentence. */
  detail: z.string().nullable(),
});
export type DiskInfo = z.infer<typeof DiskInfo>;

export const Status = z
  .object({
    version: z.string(),
    pid: z.number().int(),
    /** Seconds. */
    uptime: z.number(),
    home: z.string(),
    /** It was started for one piece of work, and ends when nothing is left to do. */
    endsWhenIdle: z.boolean().default(false),
    engine: EngineInfo,
    /** How much IO may do unasked, where a conversation or a squad has no mode of its own. */
    mode: Mode.optional(),
    queue: z.object({
      depth: z.number().int(),
      waiting: z.number().int(),
      running: z.number().int(),
      /** Replies and results that nobody has fetched or been handed yet. */
      owed: z.number().int(),
    }),
    counts: z.record(z.string(), z.number().int()),
    disk: DiskInfo.optional(),
    /** The ways in and out besides HTTP that are switched on. */
    channels: z.array(ChannelInfo).default([]),
    /** Workers on other hosts; null where there is no cluster. */
    cluster: ClusterStatus.nullable().default(null),
    /** What is kept for how long, and what was taken away since the start. */
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
