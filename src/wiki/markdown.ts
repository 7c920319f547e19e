import { withoutEnd } from "../lib/trim.ts";

/** A page's title, tags and first words. */
export interface Meta {
  title: string;
  tags: string[];
  /** The first words below the heading, for lists and summaries. */
  excerpt: string;
}

const HEAD_LINES = 400;
const HEADING = /^ {0,3}#{1,6}[ \t]+(\S[\s\S]*)$/;
const TAGS = /^[ \t*_>-]*tags[*_]*[ \t]*:[*_]*([\s\S]*)$/i;
const FENCE = /^ {0,3}(?:```|~~~)/;

/** Reads a page's metadata; the title falls back to the file's name. */
export function metaOf(path: string, text: string): Meta {
  let title = "";
  let excerpt = "";
  const tags = new Set<string>();
  let fenced = false;
  for (const line of head(text)) {
    if (FENCE.test(line)) fenced = !fenced;
    else if (!fenced) {
      const heading = HEADING.exec(line)?.[1];
      const tagged = TAGS.exec(line)?.[1];
      if (heading !== undefined) title ||= squeeze(withoutMarks(heading), 200);
      else if (tagged !== undefined) for (const tag of tagsIn(tagged)) tags.add(tag);
      else if (excerpt.length < 140 && line.trim() !== "") excerpt = squeeze(`${excerpt} ${line}`, 140);
    }
  }
  return { title: title || nameOf(path), tags: [...tags].slice(0, 50), excerpt };
}

/** A heading without its optional closing #s. */
function withoutMarks(heading: string): string {
  const open = withoutEnd(heading.trimEnd(), "#");
  return /[ \t]$/.test(open) ? open : heading;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).replace(/\.md$/, "");
}

/** The first lines, without splitting all of a long page. */
function head(text: string): string[] {
  return text.slice(text.startsWith("\ufeff") ? 1 : 0, 40_000).split(/\r\n|\n|\r/, HEAD_LINES);
}

function tagsIn(list: string): string[] {
  return list
    .split(",")
    .map((tag) => squeeze(tag.replace(/^[\s#]+/, ""), 60))
    .filter((tag) => tag !== "");
}

function squeeze(text: string, length: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${[...line.slice(0, length - 1)].join("").replace(/[\ud800-\udbff]$/, "")}…` : line;
}
