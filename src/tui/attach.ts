import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pictureTypeOf } from "../lib/file-type.ts";
import { contentOf, firstGroups, holdSpaces, namedIn, releaseSpaces } from "../lib/named-files.ts";
import { readPlainAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";

const MOST_PICTURE_BYTES = 10_000_000;
const MOST_EACH = 20_000;
const MOST_ALL = 60_000;
const MOST_FILES = 10;

/** Separates a message from its attachments. */
const MARK = "\n\n[attached by the user, as data:]\n";

/** Appends the contents of the files and folders that a message names with an @, up to a size limit. */
export function withAttachments(text: string, cwd: string): string {
  const parts: string[] = [];
  let left = MOST_ALL;
  for (const path of namedIn(text)) {
    const found = contentOf(realOf(resolve(cwd, inHome(path))));
    if (found === undefined) continue;
    const room = Math.min(MOST_EACH, left);
    const cut = found.length > room ? `${found.slice(0, room)}\n[… the rest is cut; read the file for it]` : found;
    left -= Math.min(found.length, room);
    parts.push(`--- begin ${path}\n${cut}\n--- end ${path}`);
    if (left <= 0 || parts.length >= MOST_FILES) break;
  }
  return parts.length === 0 ? text : `${text}${MARK}${parts.join("\n")}`;
}

/** A picture named in a message. */
export interface NamedPicture {
  name: string;
  bytes: Uint8Array;
}

/** The pictures named in a message with an @, or by an absolute path, which terminals paste when a file is dropped on them. */
export function picturesIn(text: string, cwd: string): NamedPicture[] {
  const paths = [...namedIn(text), ...pastedIn(text)].map((path) => realOf(resolve(cwd, inHome(path))));
  return [...new Set(paths)].slice(0, MOST_FILES).flatMap((path) => {
    const read = readPlainAt(path, MOST_PICTURE_BYTES);
    return "bytes" in read && pictureTypeOf(read.bytes) ? [{ name: basename(path), bytes: read.bytes }] : [];
  });
}

/** A message for display: the attachments are only listed by name. */
export function withoutAttachments(text: string): { text: string; attached: string[] } {
  const at = text.indexOf(MARK);
  if (at < 0) return { text, attached: [] };
  const attached = text
    .slice(at)
    .split("\n")
    .flatMap((line) => (line.startsWith("--- begin ") ? [line.slice("--- begin ".length)] : []));
  return { text: text.slice(0, at), attached: attached.slice(0, MOST_FILES) };
}

/** Finds absolute paths of pictures, in which spaces may be quoted, escaped with backslashes or percent-encoded. */
function pastedIn(text: string): string[] {
  const held = holdSpaces(text.slice(0, 20_000));
  const quoted = [/(?:^|\s)"([/~f][^"\n]{1,1000})"/g, /(?:^|\s)'([/~f][^'\n]{1,1000})'/g].flatMap((sign) =>
    firstGroups(held, sign),
  );
  const words = [...quoted, ...held.split(/\s+/)].map((word) => withoutScheme(releaseSpaces(word)));
  return words.filter((word) => /^(?:\/|~\/)/.test(word) && /\.(?:png|jpe?g|gif|webp)$/i.test(word));
}

function withoutScheme(word: string): string {
  if (!word.startsWith("file:///")) return word;
  try {
    return decodeURIComponent(word.slice("file://".length));
  } catch {
    // The percent signs are literal.
    return word.slice("file://".length);
  }
}

const inHome = (path: string): string => (path.startsWith("~/") ? join(homedir(), path.slice(2)) : path);
