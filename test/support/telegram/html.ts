/** A range of formatted text. Telegram counts in UTF-16 units. */
export interface Entity {
  type: string;
  offset: number;
  length: number;
  url?: string;
  language?: string;
}

export type Parsed = { text: string; entities: Entity[] } | { refused: string };

const TYPES: Record<string, string> = {
  b: "bold",
  strong: "bold",
  i: "italic",
  em: "italic",
  u: "underline",
  ins: "underline",
  s: "strikethrough",
  strike: "strikethrough",
  del: "strikethrough",
  "tg-spoiler": "spoiler",
  a: "text_link",
  code: "code",
  pre: "pre",
  blockquote: "blockquote",
};
const LETTERS: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"' };

/** Parses Telegram's HTML like its server, with the same refusals. */
export function parseHtml(html: string): Parsed {
  let text = "";
  const entities: Entity[] = [];
  const open: { tag: string; at: number; attributes: string }[] = [];
  for (let at = 0; at < html.length; ) {
    const letter = html[at]!;
    if (letter === "&") {
      const found = /^&(?:#(\d+)|#x([0-9a-f]+)|(lt|gt|amp|quot));/i.exec(html.slice(at, at + 12));
      if (!found) text += letter;
      else if (found[3]) text += LETTERS[found[3].toLowerCase()];
      else text += String.fromCodePoint(Number.parseInt(found[1] ?? found[2]!, found[1] ? 10 : 16));
      at += found ? found[0].length : 1;
      continue;
    }
    if (letter !== "<") {
      text += letter;
      at += 1;
      continue;
    }
    const tag = /^<(\/?)([a-z0-9-]*)((?:\s+[a-z-]+(?:="[^"]*")?)*)\s*>/i.exec(html.slice(at));
    if (!tag) return { refused: `can't parse entities: Unclosed start tag at byte offset ${bytes(html, at)}` };
    const [whole, closes, name = "", attributes = ""] = tag;
    const known = TYPES[name.toLowerCase()];
    if (!known) return { refused: `can't parse entities: Unsupported start tag "${name}" at byte offset ${bytes(html, at)}` };
    if (closes) {
      const last = open.pop();
      if (!last) return { refused: `can't parse entities: Unexpected end tag at byte offset ${bytes(html, at)}` };
      if (last.tag !== name.toLowerCase())
        return {
          refused: `can't parse entities: Unmatched end tag at byte offset ${bytes(html, at)}, expected "</${last.tag}>", found "</${name.toLowerCase()}>"`,
        };
      const entity = entityOf(known, last, text);
      if (entity) entities.push(entity);
    } else open.push({ tag: name.toLowerCase(), at: text.length, attributes });
    at += whole.length;
  }
  if (open.length > 0)
    return { refused: `can't parse entities: Can't find end tag corresponding to start tag "${open.at(-1)!.tag}"` };
  return trimmed(text, settled(merged(entities)));
}

const SPLITTABLE = ["bold", "italic", "underline", "strikethrough", "spoiler"];
const endOf = ({ offset, length }: Entity) => offset + length;
const overlap = (a: Entity, b: Entity) => a.offset < endOf(b) && b.offset < endOf(a);
const holds = (a: Entity, b: Entity) => a.offset <= b.offset && endOf(b) <= endOf(a);

/** Resolves overlaps: no link or code inside another, no quote inside a quote, and no emphasis inside code. */
function settled(entities: Entity[]): Entity[] {
  const sorted = [...entities].sort((a, b) => a.offset - b.offset || b.length - a.length);
  const alone = (kept: Entity[], each: Entity) => (kept.some((other) => overlap(other, each)) ? kept : [...kept, each]);
  const quotes = sorted.filter(({ type }) => type === "blockquote").reduce(alone, []);
  const solid = sorted
    .filter(({ type }) => type !== "blockquote" && !SPLITTABLE.includes(type))
    .reduce(alone, [])
    .filter((each) => quotes.every((quote) => !overlap(quote, each) || holds(quote, each)));
  const code = solid.filter(({ type }) => type === "code" || type === "pre");
  const emphasis = joined(sorted.filter(({ type }) => SPLITTABLE.includes(type))).flatMap((each) => code.reduce(without, [each]));
  return [...quotes, ...solid, ...emphasis].sort((a, b) => a.offset - b.offset || b.length - a.length);
}

function joined(sorted: Entity[]): Entity[] {
  const all: Entity[] = [];
  for (const each of sorted) {
    const before = all.findLast(({ type }) => type === each.type);
    if (before && each.offset <= endOf(before)) before.length = Math.max(endOf(before), endOf(each)) - before.offset;
    else all.push({ ...each });
  }
  return all;
}

/** The parts of some ranges that are outside another range. */
function without(pieces: Entity[], hole: Entity): Entity[] {
  return pieces.flatMap((piece) => {
    if (!overlap(piece, hole)) return [piece];
    const before = { ...piece, length: hole.offset - piece.offset };
    const after = { ...piece, offset: endOf(hole), length: endOf(piece) - endOf(hole) };
    return [before, after].filter(({ length }) => length > 0);
  });
}

function entityOf(type: string, { at, attributes }: { at: number; attributes: string }, text: string): Entity | undefined {
  if (text.length === at) return undefined;
  const value = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(attributes)?.[1];
  const language = type === "code" ? value("class")?.replace(/^language-/, "") : undefined;
  const url = type === "text_link" ? value("href")?.replaceAll("&amp;", "&").replaceAll("&quot;", '"') : undefined;
  return { type, offset: at, length: text.length - at, ...(url && { url }), ...(language && { language }) };
}

/** `<pre><code class="language-x">` is one entity. */
function merged(entities: Entity[]): Entity[] {
  return entities.flatMap((each, index) => {
    const outer = entities[index + 1];
    const isInner = each.type === "code" && outer?.type === "pre" && outer.offset === each.offset && outer.length === each.length;
    if (isInner && outer && each.language) outer.language = each.language;
    return isInner ? [] : [each];
  });
}

function trimmed(text: string, entities: Entity[]): Parsed {
  const start = text.length - text.trimStart().length;
  const end = text.trimEnd().length;
  const kept = entities
    .map((each) => {
      const from = Math.max(each.offset, start);
      return { ...each, offset: from - start, length: Math.min(each.offset + each.length, end) - from };
    })
    .filter(({ length }) => length > 0);
  return { text: text.slice(start, end), entities: kept };
}

const bytes = (text: string, at: number) => Buffer.byteLength(text.slice(0, at));
