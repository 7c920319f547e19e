import type { Event } from "../../protocol/events.ts";
import type { Attachment } from "../../protocol/messages.ts";

/** How to follow a conversation. */
export interface Following {
  conversation: string;
  signal: AbortSignal;
  /** Waits for a lost daemon, and misses nothing that happens meanwhile. */
  wait: "for ever";
  onOpen: () => void;
  onLost: () => void;
}

/** The daemon as the editor's process reaches it. */
export interface AcpAccess {
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Uploads a file, to be attached to a message. */
  upload(name: string, bytes: Uint8Array): Promise<Attachment>;
  events(following: Following): AsyncIterable<Event>;
  /** Resolves when a daemon serves; starts one if necessary. */
  ready(): Promise<void>;
  /** Whether the daemon that is gone was stopped by somebody, instead of being killed. */
  wasStopped(): boolean;
  /** Writes a line into the editor's log of this process. */
  note(text: string): void;
}
