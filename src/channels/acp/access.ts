import type { Event } from "../../protocol/events.ts";
import type { Attachment } from "../../protocol/messages.ts";

/** What a follower of a conversation asks for. */
export interface Following {
  conversation: string;
  signal: AbortSignal;
  /** A daemon that is lost is waited for, and nothing that happened meanwhile is missed. */
  wait: "for ever";
  onOpen: () => void;
  onLost: () => void;
}

/** The daemon as an editor's process reaches it. */
export interface AcpAccess {
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Sends a file, to be attached to a message. */
  upload(name: string, bytes: Uint8Array): Promise<Attachment>;
  events(following: Following): AsyncIterable<Event>;
  /** Has a daemon serve: one is started if none does. */
  ready(): Promise<void>;
  /** A line for whoever reads the editor's log of this process. */
  note(text: string): void;
}
