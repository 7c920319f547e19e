import type { Message } from "../protocol/messages.ts";

/**
 * What the model reads: where the message came from, then its text. The same for every life of a message. A line of the
 * text that looks like where a message came from is spelled so that it cannot pass for it.
 */
export function promptOf({ source, text }: Pick<Message, "source" | "text">): string {
  return `[via ${source.channel}] ${text.replace(FORGED, "$1$2\\[")}`;
}

/** Spaces and what cannot be seen may stand around the bracket. */
const FORGED = /(^|[\n\r\v\f\u0085\u2028\u2029])([\p{Zs}\p{Cf}\t]*)\[(?=[\s\p{Cf}]*via\b)/giu;
