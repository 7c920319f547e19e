import type { Approval } from "../protocol/approvals.ts";
import type { Message, Source } from "../protocol/messages.ts";
import type { NewsLevel } from "../protocol/news.ts";
import type { Receipt } from "../protocol/outbox.ts";

/** A reply on its way to whoever asked. */
export interface Reply {
  message: Message;
  to: Source;
}

/** Something that a person is to decide, on its way to whoever asked for the work. */
export interface Question {
  approval: Approval;
  to: Source;
  /** It was asked before and is about to expire. */
  isReminder?: boolean;
}

/** Something that IO itself has to say. */
export interface Announcement {
  news: string;
  level: NewsLevel;
  /** The same for the same news. */
  key: string;
  to: Source;
}

/**
 * A way in and out of IO. What comes in goes into the inbox under a key of its own, so that the same thing twice is one
 * message; what goes out comes from the outbox.
 */
export interface Channel {
  readonly name: string;
  /** Whether it carries the replies to what came from there. */
  carries(source: Source): boolean;
  /** Begins to listen. */
  start(): Promise<void>;
  /** Hands a reply, a question or news over. Throws when that cannot be done just now: it is tried again, and what follows waits. */
  deliver(what: Reply | Question | Announcement): Promise<Receipt> | Receipt;
  close(): Promise<void>;
}
