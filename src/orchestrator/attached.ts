import { pictureId } from "../engine/sessions/pictures.ts";
import { pictureMark } from "../engine/wire/pictures.ts";
import { MAX_PICTURE_BYTES, pictureTypeOf } from "../lib/file-type.ts";
import { quoted } from "../lib/quoted.ts";
import { sizeText } from "../lib/size.ts";
import { asData } from "../lib/untrusted.ts";
import type { Message } from "../protocol/messages.ts";
import { type Attachments, isNamedFile } from "../store/attachments.ts";

/** The most text from files: of each file, and of all together. */
const MOST_EACH = 20_000;
const MOST_ALL = 60_000;

/** The part of a prompt about the files of a message. */
export interface Attached {
  /** Appended to the message's text. */
  text: string;
  /** The pictures that the text refers to. */
  pictures: Uint8Array[];
}

/** Describes the files of a message: each path, the content of texts, and pictures by their marks. Deterministic. */
export function describeAttachments(
  { attachments, text: said }: Pick<Message, "attachments" | "text">,
  files: Pick<Attachments, "find" | "read" | "pathOf">,
): Attached {
  const pictures: Uint8Array[] = [];
  let left = MOST_ALL;
  const lines = attachments.flatMap(({ id, name, type, size }) => {
    const row = files.find(id);
    const bytes = files.read(id);
    if (!row || !bytes) return [`${quoted(name)} is gone.`];
    const path = files.pathOf(row);
    // For Telegram, the message's text already names its files.
    const sent = said.includes(row.path) ? "" : `${quoted(name)}, ${type}, ${sizeText(size)}: ${path}`;
    // The copy is not the file to work on.
    const told = isNamedFile(id) ? `${quoted(name)}, which the message names, as it was when that came:` : sent;
    if (pictureTypeOf(bytes)) {
      if (bytes.length > MAX_PICTURE_BYTES) return [`${told || path} (too large to be shown)`];
      pictures.push(bytes);
      return [`${told} ${pictureMark(pictureId(bytes))}`.trim()];
    }
    if (type !== "text/plain") return told ? [told] : [];
    const room = Math.min(MOST_EACH, left);
    const words = bytes.toString("utf8");
    const shown = words.slice(0, room).toWellFormed();
    left -= shown.length;
    const cut =
      shown.length < words.length ? [`[The rest is cut: ${words.length - shown.length} characters; read the file for it.]`] : [];
    return [...(told ? [told] : []), ...(shown ? [asData(shown, id)] : []), ...cut];
  });
  return { text: lines.length === 0 ? "" : `\n\n[Files that came with this message:]\n${lines.join("\n")}`, pictures };
}
