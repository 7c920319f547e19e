import type { Message } from "grammy/types";
import { quoted } from "../../lib/quoted.ts";
import { fromOutside } from "../../lib/untrusted.ts";
import type { Attachment } from "../../protocol/messages.ts";
import type { Downloads } from "./downloads.ts";
import { type Media, mediaOf } from "./media.ts";

export interface ComposeDeps {
  downloads: Pick<Downloads, "fetch">;
  /** Makes a file on disk an attachment. */
  adopt: (path: string, bytes: Uint8Array) => Attachment;
  /** Transcribes speech; undefined if there is no transcriber. */
  transcribe: ((file: string) => Promise<string>) | undefined;
}

/** A message in words for the model, and the hints that its sender gets at once. */
export interface Composed {
  text: string;
  hints: string[];
  /** Ids of the attached photos and documents. */
  attachments: string[];
}

export const NO_TRANSCRIBER =
  "There is no transcriber, so I cannot hear this voice message; the file is kept. Set transcribeCommand in config.json to a program that turns speech into text.";

/** Composes one message, or those of an album, after downloading their files. */
export function createComposer({ downloads, adopt, transcribe }: ComposeDeps) {
  async function attached(media: Media, conversation: string, { hints, attachments }: Omit<Composed, "text">): Promise<string[]> {
    const got = await downloads.fetch(media, conversation);
    if ("refused" in got) {
      hints.push(`${media.name} was not taken: ${got.refused}`);
      return [`(A ${media.kind}, ${quoted(media.name)}, could not be taken: ${got.refused})`];
    }
    const line = `(Attached ${media.kind}${media.type ? `, ${quoted(media.type, 60)}` : ""}, ${got.bytes.length} bytes: ${got.path})`;
    if (media.kind === "photo" || media.kind === "document") attachments.push(adopt(got.path, got.bytes).id);
    if (media.kind !== "voice message") return [line];
    return [line, await heard(got.path, hints)].filter((each) => each !== "");
  }

  async function heard(path: string, hints: string[]): Promise<string> {
    if (!transcribe) {
      hints.push(NO_TRANSCRIBER);
      return "(It was not transcribed.)";
    }
    try {
      const words = (await transcribe(path)).trim();
      return words === "" ? "(The transcriber heard nothing in it.)" : `(Transcribed by a machine:)\n${words}`;
    } catch {
      hints.push("The transcriber failed on this voice message; the file is kept. The log says why: io logs.");
      return "(It could not be transcribed.)";
    }
  }

  return async (messages: readonly Message[], conversation: string): Promise<Composed> => {
    const hints: string[] = [];
    const attachments: string[] = [];
    const lines: string[] = [];
    for (const message of messages) {
      const words = (message.text ?? message.caption ?? "").trim();
      const repliedTo = message.quote?.text ?? message.reply_to_message?.text;
      if (repliedTo !== undefined && !message.reply_to_message?.forum_topic_created)
        lines.push(`(About: ${quoted(repliedTo, 500)})`);
      if (words !== "") lines.push(message.forward_origin ? fromOutside("a message that the user forwards", words) : words);
      const media = mediaOf(message);
      if (media) lines.push(...(await attached(media, conversation, { hints, attachments })));
    }
    return { text: lines.join("\n"), hints, attachments };
  };
}
export type Compose = ReturnType<typeof createComposer>;
