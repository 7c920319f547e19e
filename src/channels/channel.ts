import type { Approval } from "../protocol/approvals.ts";
import type { Message, Source } from "../protocol/messages.ts";
import type { NewsLevel } from "../protocol/news.ts";
import type { Receipt } from "../protocol/outbox.ts";

/** A reply to deliver to whoever asked. */
export interface Reply {
  message: Message;
  to: Source;
}

/** A question that a person must decide, addressed to whoever asked for the work. */
export interface Question {
  approval: Approval;
  to: Source;
  /** Whether the question was asked before and is about to expire. */
  isReminder?: boolean;
}

/** News that IO itself announces. */
export interface Announcement {
  news: string;
  level: NewsLevel;
  /** Identifies the news, so that it is delivered once. */
  key: string;
  to: Source;
}

/**
 * A way in and out of IO. Incoming messages go into the inbox under an idempotency key, so that a repeated one counts once;
 * outgoing ones come from the outbox.
 */
export interface Channel {
  readonly name: string;
  /** Whether the channel delivers replies to messages from this source. */
  carries(source: Source): boolean;
  /** Begins to listen. */
  start(): Promise<void>;
  /**
   * Delivers a reply, question or announcement. Throws if that is impossible now: the outbox tries again, and later entries wait.
   */
  deliver(what: Reply | Question | Announcement): Promise<Receipt> | Receipt;
  close(): Promise<void>;
}
