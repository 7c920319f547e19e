import { entriesAt } from "./pinned/list.ts";
import { readPlainAt } from "./pinned/read.ts";

const MAX_BYTES = 1_000_000;
const MAX_ENTRIES = 200;
/** How much of a message is searched for names. */
const MAX_SEARCHED = 20_000;

/** The paths that a message names with an at-sign. Spaces in a path are escaped with a backslash, or the path is quoted. */
export function namedIn(text: string): string[] {
  const held = holdSpaces(text.slice(0, MAX_SEARCHED));
  const quoted = [/(?:^|[\s(])@"([^"\n]{1,1000})"/g, /(?:^|[\s(])@'([^'\n]{1,1000})'/g].flatMap((sign) =>
    firstGroups(held, sign),
  );
  const words = held.split(/\s+/).flatMap((word) => (/^[("'`]?@/.test(word) ? [word.slice(word.indexOf("@") + 1)] : []));
  const plain = words.map((name) => name.replace(/[),.;:!?"'`]{0,10}$/, ""));
  return [...new Set([...quoted, ...plain].filter(Boolean).map(releaseSpaces))];
}

export const firstGroups = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, group = ""]) => group);

/** Replaces escaped spaces by NUL, the one character that no path contains. */
export const holdSpaces = (text: string): string => text.replaceAll("\\ ", "\0");
export const releaseSpaces = (word: string): string => word.replaceAll("\0", " ");

/** The text of a file, or the names in a folder; undefined for anything else, such as a binary file. */
export function contentOf(real: string): string | undefined {
  const read = readPlainAt(real, MAX_BYTES);
  if ("bytes" in read) {
    const isText = !read.bytes.subarray(0, 8_000).includes(0);
    return isText ? read.bytes.toString("utf8") : undefined;
  }
  if (read.absent === "too large") return "[it is too large to go along; read it with file_ops]";
  if (read.absent !== "a folder") return undefined;
  const names = entriesAt(real).map((entry) => `${entry.name}${entry.isDirectory() ? "/" : ""}`);
  const more = names.length > MAX_ENTRIES ? [`[… ${names.length - MAX_ENTRIES} more]`] : [];
  return [...names.sort().slice(0, MAX_ENTRIES), ...more].join("\n");
}
