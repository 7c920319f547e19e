import { createHash } from "node:crypto";
import type { InlineKeyboardMarkup } from "grammy/types";
import type { Chat } from "./chat.ts";
import type { AttachedFile, Piece } from "./format/answer.ts";
import { MAX_TEXT } from "./format/pieces.ts";

export interface Button {
  text: string;
  /** At most 64 bytes. */
  data: string;
}

/** What a chat should show. */
export interface Content {
  pieces: readonly Piece[];
  files?: readonly AttachedFile[];
  /** Rows of buttons below the last piece. */
  buttons?: readonly (readonly Button[])[];
  /** Sent without a sound. */
  silent?: boolean;
  /** The last piece makes a sound of its own. */
  alarm?: boolean;
  /** Not worth repeating if it is unknown whether it was sent. */
  once?: boolean;
}

/** The content of one Telegram message. */
export interface Part {
  name: string;
  piece: Piece;
  file?: AttachedFile;
  markup?: InlineKeyboardMarkup;
  silent: boolean;
}

export const REPEAT = "(perhaps a repeat)";
export const WRONG_TOPIC = "(from a topic that is gone)";

export function partsOf({ pieces, files = [], buttons = [], silent = false, alarm = false }: Content): Part[] {
  const rows = buttons.map((row) => row.map(({ text, data }) => ({ text, callback_data: data })));
  const texts = pieces.map((piece, index): Part => {
    const isLast = index === pieces.length - 1;
    const markup = isLast && rows.length > 0 ? { markup: { inline_keyboard: rows } } : {};
    // One answer makes one sound, however many messages it takes.
    return { name: `text:${number(index)}`, piece, silent: silent || (index > 0 && !(alarm && isLast)), ...markup };
  });
  const attached = files.map(
    (file, index): Part => ({ name: `file:${number(index)}`, piece: { html: "", plain: "" }, file, silent: true }),
  );
  return [...texts, ...attached];
}

const number = (index: number) => String(index).padStart(3, "0");

/** Notes that a message needs: that it may be a repeat, or that it is in another topic. */
export function notesOf(to: Chat, place: Chat, repeated: boolean): string[] {
  return [...(repeated ? [REPEAT] : []), ...(to.threadId !== place.threadId ? [WRONG_TOPIC] : [])];
}

export function textOf({ piece, file }: Part, notes: readonly string[], asHtml: boolean): string {
  const text = asHtml ? piece.html : piece.plain;
  if (file) return notes.join(" ");
  return hasRoom({ piece }) ? [...notes, text].join("\n") : text;
}

/** Whether the notes still fit into the message. */
export const hasRoom = ({ piece }: Pick<Part, "piece">) =>
  piece.plain.length + REPEAT.length + WRONG_TOPIC.length + 2 <= MAX_TEXT;

export function optionsOf({ markup }: Part, asHtml: boolean) {
  return { ...(asHtml && { parse_mode: "HTML" as const }), ...(markup && { reply_markup: markup }) };
}

export const hashOf = ({ piece, markup }: Part) =>
  createHash("sha256")
    .update(JSON.stringify([piece.html, markup ?? null]))
    .digest("hex")
    .slice(0, 24);
