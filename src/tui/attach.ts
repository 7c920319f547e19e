import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pictureTypeOf } from "../lib/file-type.ts";
import { contentOf, namedIn } from "../lib/named-files.ts";
import { readPlainAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";

const MOST_PICTURE_BYTES = 10_000_000;
const MOST_EACH = 20_000;
const MOST_ALL = 60_000;
const MOST_FILES = 10;

/** What stands between a message and what goes along with it. */
const MARK = "\n\n[attached by the user, as data:]\n";

/** A message with the text of the files and folders that it names with an at-sign, as far as there is room. */
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

/** A picture that a message names. */
export interface NamedPicture {
  name: string;
  bytes: Uint8Array;
}

/** The pictures that a message names with an at-sign, or by a whole path as terminals paste it when a file is dropped on them. */
export function picturesIn(text: string, cwd: string): NamedPicture[] {
  const paths = [...namedIn(text), ...pastedIn(text)].map((path) => realOf(resolve(cwd, inHome(path))));
  return [...new Set(paths)].slice(0, MOST_FILES).flatMap((path) => {
    const read = readPlainAt(path, MOST_PICTURE_BYTES);
    return "bytes" in read && pictureTypeOf(read.bytes) ? [{ name: basename(path), bytes: read.bytes }] : [];
  });
}

/** A message as it is shown: what went along is only named. */
export function withoutAttachments(text: string): { text: string; attached: string[] } {
  const at = text.indexOf(MARK);
  if (at < 0) return { text, attached: [] };
  const attached = text
    .slice(at)
    .split("\n")
    .flatMap((line) => (line.startsWith("--- begin ") ? [line.slice("--- begin ".length)] : []));
  return { text: text.slice(0, at), attached: attached.slice(0, MOST_FILES) };
}

/** Whole paths of pictures, with the quotes or backslashes that shells want around their spaces. */
function pastedIn(text: string): string[] {
  const held = text.slice(0, 20_000).replaceAll("\\ ", "\0");
  const lines = held.split("\n").map((line) => line.trim());
  const isQuoted = (line: string) => [`'`, `"`].some((sign) => line.startsWith(sign) && line.endsWith(sign));
  const quoted = lines.flatMap((line) => (isQuoted(line) ? [line.slice(1, -1)] : []));
  const words = [...quoted, ...held.split(/\s+/)].map((word) => word.replaceAll("\0", " ").replace(/^file:\/\//, ""));
  return words.filter((word) => /^(?:\/|~\/)/.test(word) && /\.(?:png|jpe?g|gif|webp)$/i.test(word));
}

const inHome = (path: string): string => (path.startsWith("~/") ? join(homedir(), path.slice(2)) : path);
