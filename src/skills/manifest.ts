import { closeSync, readSync } from "node:fs";
import { basename } from "node:path";
import { z } from "zod";
import { inFolderOf, openPlain } from "../lib/pinned/read.ts";
import { withoutEnd } from "../lib/trim.ts";
import { readSmallYaml } from "../lib/yaml.ts";

const MAX_BYTES = 256_000;
const NAME_LENGTH = 100;
/** What the format allows. */
const DESCRIPTION_LENGTH = 1_024;

const FrontMatter = z.looseObject({
  name: z.union([z.string(), z.number()]).optional().catch(undefined),
  description: z.string().optional().catch(undefined),
});

export interface SkillManifest {
  name: string;
  description: string;
}

/** A `SKILL.md`'s own name and description: from its front matter, else its first heading and paragraph, else the given name. */
export function parseManifest(text: string, fallback: string): SkillManifest {
  const { matter, body } = split(text.replace(/^\uFEFF/, ""));
  const prose = fromProse(body);
  return {
    name: safeLine(String(matter.name ?? ""), NAME_LENGTH) || safeLine(prose.name, NAME_LENGTH) || fallback,
    description: safeLine(matter.description ?? "", DESCRIPTION_LENGTH) || safeLine(prose.description, DESCRIPTION_LENGTH),
  };
}

/** The text below the front matter, without characters that a model reads and nobody sees. */
export function bodyOf(text: string): string {
  return split(text.replace(/^\uFEFF/, ""))
    .body.replace(/[\u{e0000}-\u{e007f}]/gu, "")
    .trim();
}

/** The beginning of a text, at most 256 KB. */
export function headOf(bytes: Buffer): string {
  return bytes.toString("utf8", 0, Math.min(bytes.length, MAX_BYTES));
}

/** The beginning of a text file by its real path; undefined if there is no regular file. */
export function readHead(path: string): string | undefined {
  const opened = inFolderOf(path, (folder) => openPlain(folder, basename(path)));
  if ("absent" in opened) return undefined;
  try {
    const buffer = Buffer.alloc(MAX_BYTES);
    let length = 0;
    for (let read = -1; read !== 0 && length < MAX_BYTES; length += read)
      read = readSync(opened.handle, buffer, length, MAX_BYTES - length, null);
    return buffer.toString("utf8", 0, length);
  } finally {
    closeSync(opened.handle);
  }
}

/** One line of harmless text: a stranger's words must not begin a new line, move a terminal's cursor or hide from a reader. */
export function safeLine(text: string, length: number): string {
  const line = text
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]+/gu, " ")
    .replace(/ {2,}/g, " ")
    .trim();
  const letters = [...line];
  return letters.length <= length ? line : `${letters.slice(0, length - 1).join("")}…`;
}

function split(text: string): { matter: z.infer<typeof FrontMatter>; body: string } {
  const found = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  if (!found) return { matter: {}, body: text };
  const body = text.slice(found[0].length);
  const read = readSmallYaml(found[1]!);
  const matter = FrontMatter.safeParse("problems" in read ? undefined : read.value);
  // If the front matter is unreadable, the heading and paragraph below it still name the skill.
  return { matter: matter.success ? matter.data : {}, body };
}

function fromProse(body: string): SkillManifest {
  const lines = body.split(/\r?\n/);
  const at = lines.findIndex((line) => /^#{1,6}\s+\S/.test(line));
  const name =
    at < 0
      ? ""
      : withoutEnd(lines[at]!.slice(0, 500).trimEnd(), "#")
          .replace(/^#+\s+/, "")
          .trimEnd();
  const rest = lines.slice(at + 1);
  const start = rest.findIndex((line) => line.trim() !== "" && !line.startsWith("#"));
  if (start < 0) return { name, description: "" };
  const end = rest.findIndex((line, index) => index > start && (line.trim() === "" || line.startsWith("#")));
  return { name, description: rest.slice(start, end < 0 ? undefined : end).join(" ") };
}
