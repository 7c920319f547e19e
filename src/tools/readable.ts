import { Parser } from "htmlparser2";
import { createBreath } from "../lib/breath.ts";

const DROPPED = new Set([
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "canvas",
  "iframe",
  "object",
  "nav",
  "footer",
  "aside",
  "button",
  "select",
  "dialog",
]);
const BLOCKS = new Set([
  "p",
  "div",
  "section",
  "article",
  "main",
  "header",
  "ul",
  "ol",
  "dl",
  "dt",
  "dd",
  "table",
  "blockquote",
  "figure",
  "figcaption",
  "form",
  "address",
  "hr",
  "details",
  "summary",
]);
const HEADING = /^h([1-6])$/;
const PIECE = 4_096;
const DEEPEST = 2_000;

export interface Readable {
  title: string;
  text: string;
  /** Whether the page continues beyond what was read. */
  cut: boolean;
}

/** Extracts the text of a web page with its headings, lists, links and code, without what only affects its looks. */
export async function readable(html: string, base: string, limit: number): Promise<Readable> {
  const breathe = createBreath();
  const out = createWriter();
  const lists: { ordered: boolean; count: number }[] = [];
  const links: { href: string; place: ReadablePath }[] = [];
  let title = "";
  let depth = 0;
  let droppedAt = 0;
  let inTitle = false;
  let inHead = false;
  let pre = 0;

  const open = (name: string, attributes: Record<string, string>) => {
    const heading = HEADING.exec(name);
    if (name === "head") inHead = true;
    else if (name === "title") inTitle = title === "";
    else if (heading) {
      out.lines(2);
      out.lead("#".repeat(Number(heading[1])));
    } else if (name === "br") out.raw("\n");
    else if (name === "ul" || name === "ol") {
      out.lines(lists.length === 0 ? 2 : 1);
      lists.push({ ordered: name === "ol", count: 0 });
    } else if (name === "li") {
      const list = lists.at(-1);
      if (list) list.count += 1;
      out.lines(1);
      out.lead(`${"  ".repeat(Math.min(10, Math.max(0, lists.length - 1)))}${list?.ordered ? `${list.count}.` : "-"}`);
    } else if (name === "pre") {
      out.lines(2);
      if (pre === 0) out.raw("```\n");
      pre += 1;
    } else if (name === "code" && pre === 0) out.mark("`");
    else if (name === "a") links.push({ href: linkOf(attributes.href, base), place: out.place() });
    else if (name === "img" && attributes.alt) out.words(` [image: ${attributes.alt}] `);
    else if (name === "tr") out.lines(1);
    else if (name === "td" || name === "th") out.cell();
    else if (BLOCKS.has(name)) out.lines(name === "p" ? 2 : 1);
  };
  const close = (name: string) => {
    if (name === "head") inHead = false;
    else if (name === "title") inTitle = false;
    else if (HEADING.test(name) || name === "p") out.lines(2);
    else if (name === "ul" || name === "ol") {
      lists.pop();
      out.lines(lists.length === 0 ? 2 : 1);
    } else if (name === "pre" && pre > 0) {
      pre -= 1;
      if (pre > 0) return;
      out.lines(1);
      out.raw("```\n\n");
    } else if (name === "code" && pre === 0) out.raw("`");
    else if (name === "a") {
      const link = links.pop();
      if (link?.href) out.replaceFrom(link.place, (label) => (label === link.href ? label : `[${label}](${link.href})`));
    } else if (BLOCKS.has(name)) out.lines(1);
  };

  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        if (droppedAt > 0) return;
        if (DROPPED.has(name) || isHidden(attributes)) droppedAt = depth;
        else open(name, attributes);
      },
      onclosetag(name) {
        depth -= 1;
        if (droppedAt === 0) close(name);
        else if (depth < droppedAt) droppedAt = 0;
      },
      ontext(data) {
        if (droppedAt > 0) return;
        if (inTitle) title += data;
        else if (!inHead) (pre > 0 ? out.raw : out.words)(data);
      },
    },
    { decodeEntities: true, lowerCaseTags: true },
  );
  let at = 0;
  while (at < html.length && out.length() <= limit && depth <= DEEPEST) {
    parser.write(html.slice(at, at + PIECE));
    at += PIECE;
    await breathe();
  }
  const cut = at < html.length;
  if (!cut) parser.end();
  return { title: title.slice(0, 1_000).replace(/\s+/g, " ").trim().slice(0, 300), text: out.text().trim(), cut };
}

interface ReadablePath {
  part: number;
  length: number;
}

/** Joins text so that the cost of adding a piece does not grow with what came before it. */
function createWriter() {
  const parts: string[] = [];
  let length = 0;
  let breaks = 0;
  let space = false;
  const raw = (text: string) => {
    if (text === "") return;
    parts.push(text);
    length += text.length;
    const ending = /\n{0,3}$/.exec(text.slice(-3))![0].length;
    breaks = ending === text.length ? breaks + ending : ending;
    space = false;
  };
  const spaced = () => {
    if (space && breaks === 0 && length > 0) raw(" ");
    space = false;
  };
  return {
    raw,
    length: () => length,
    text: () => parts.join("").replace(/\n{3,}/g, "\n\n"),
    lines(wanted: number) {
      space = false;
      if (length > 0 && breaks < wanted) raw("\n".repeat(wanted - breaks));
    },
    /** Begins a line with a marker, which a space separates from what follows. */
    lead(text: string) {
      raw(text);
      space = true;
    },
    mark(text: string) {
      spaced();
      raw(text);
    },
    cell() {
      if (breaks === 0 && length > 0) raw(" | ");
    },
    words(data: string) {
      const flat = data.replace(/\s+/g, " ");
      const core = flat.trim();
      if (flat.startsWith(" ")) space = true;
      if (core === "") return;
      spaced();
      raw(core);
      space = flat.endsWith(" ");
    },
    place(): ReadablePath {
      spaced();
      return { part: parts.length, length };
    },
    replaceFrom(place: ReadablePath, change: (label: string) => string) {
      if (place.part > parts.length || length - place.length > 300) return;
      const label = parts.slice(place.part).join("").trim();
      if (label === "") return;
      const after = space;
      parts.length = place.part;
      length = place.length;
      raw(change(label));
      space = after;
    },
  };
}

function isHidden(attributes: Record<string, string>): boolean {
  return (
    "hidden" in attributes ||
    attributes["aria-hidden"] === "true" ||
    /display\s*:\s*none|visibility\s*:\s*hidden/i.test(attributes.style ?? "")
  );
}

function linkOf(href: string | undefined, base: string): string {
  if (!href || href.startsWith("#")) return "";
  try {
    const url = new URL(href, base);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href.slice(0, 500) : "";
  } catch {
    // An invalid address leads nowhere.
    return "";
  }
}
