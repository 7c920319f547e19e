import { entriesAt } from "./pinned/list.ts";
import { readPlainAt } from "./pinned/read.ts";

const MOST_BYTES = 1_000_000;
const MOST_ENTRIES = 200;
/** A longer message is searched for names up to here. */
const SEARCHED = 20_000;

/** The paths that a message names with an at-sign. */
export function namedIn(text: string): string[] {
  const words = text.slice(0, SEARCHED).split(/\s+/);
  const names = words.flatMap((word) => (/^[("'`]?@./.test(word) ? [word.slice(word.indexOf("@") + 1)] : []));
  return [...new Set(names.map((name) => name.replace(/[),.;:!?"'`]{0,10}$/, "")).filter(Boolean))];
}

/** The text of a file, or the names in a folder; undefined for what is neither, or no text. */
export function contentOf(real: string): string | undefined {
  const read = readPlainAt(real, MOST_BYTES);
  if ("bytes" in read) {
    const isText = !read.bytes.subarray(0, 8_000).includes(0);
    return isText ? read.bytes.toString("utf8") : undefined;
  }
  if (read.absent === "too large") return "[it is too large to go along; read it with file_ops]";
  if (read.absent !== "a folder") return undefined;
  const names = entriesAt(real).map((entry) => `${entry.name}${entry.isDirectory() ? "/" : ""}`);
  const more = names.length > MOST_ENTRIES ? [`[… ${names.length - MOST_ENTRIES} more]`] : [];
  return [...names.sort().slice(0, MOST_ENTRIES), ...more].join("\n");
}
