import type { Body, Dialect, Illustration, Picture } from "./dialect.ts";

/** Finds a picture by the reference in a session's text. */
export type PictureOf = (session: string, id: string) => Promise<Picture | undefined>;

/** A picture's reference in a text; the picture is added when a model is called. */
export const pictureMark = (id: string): string => `[picture ${id}]`;
const MARK = /\[picture ([0-9a-f]{32})\]/g;

/** How many of a conversation's newest pictures are sent, and their total size in base64. */
const MOST = 20;
const MOST_CHARACTERS = 12_000_000;
/** The approximate tokens of a picture. */
const TOKENS = 1_600;

const BLIND =
  "[IO: the model that reads this cannot see pictures. Say so if it matters; tools can work with the file by its path.]";
const LEFT_OUT = "[IO: a picture named here is not shown: it is too old or too large, or the provider refused it.]";

export interface PictureDeps {
  find: (id: string) => Promise<Picture | undefined>;
  sees: boolean;
  /** Pictures that the provider has refused. */
  refused: ReadonlySet<string>;
}

/** Adds pictures to requests, except refused ones: the conversation continues without those. */
export function createIllustrator(pictureOf: PictureOf) {
  const refused = new Map<string, Set<string>>();
  return {
    /** `blamed` are those that may have caused the last refusal. */
    illustrate: (
      { session, dialect, sees, blamed }: { session: string; dialect: Dialect; sees: boolean; blamed: readonly string[] },
      body: Body,
    ) =>
      withPictures(dialect, body, {
        find: (id) => pictureOf(session, id),
        sees,
        refused: new Set([...blamed, ...(refused.get(body.model) ?? [])]),
      }),
    refuse: (model: string, ids: readonly string[]) => void refused.set(model, new Set([...ids, ...(refused.get(model) ?? [])])),
  };
}

/** The tokens to reserve for a request's pictures. */
export function pictureTokens(dialect: Dialect, body: Body): number {
  const named = dialect.items(body).reduce((count, { role, text }) => count + idsIn(role, text).length, 0);
  return Math.min(named, MOST) * TOKENS;
}

/** Replaces each reference by its picture, or by a sentence where it cannot be shown; returns which are shown. */
export async function withPictures(
  dialect: Dialect,
  body: Body,
  { find, sees, refused }: PictureDeps,
): Promise<{ body: Body; shown: string[] }> {
  const items = dialect.items(body).map((item) => ({ ...item, ids: idsIn(item.role, item.text) }));
  if (items.every(({ ids }) => ids.length === 0)) return { body, shown: [] };
  const shown = new Map<string, Picture>();
  const known = new Set<string>();
  let room = MOST_CHARACTERS;
  for (const id of new Set(items.toReversed().flatMap(({ ids }) => ids.toReversed()))) {
    const picture = await find(id);
    if (!picture) continue;
    known.add(id);
    room -= picture.data.length;
    if (sees && !refused.has(id) && shown.size < MOST && room >= 0) shown.set(id, picture);
  }
  const told = new Set<string>();
  const partsOf = (ids: readonly string[]): Illustration => {
    const there = ids.filter((id) => known.has(id) && !told.has(id));
    for (const id of there) told.add(id);
    const pictures = there.flatMap((id) => shown.get(id) ?? []);
    return { pictures, note: pictures.length === there.length ? "" : sees ? LEFT_OUT : BLIND };
  };
  const raw: unknown[] = [];
  /** Pictures of tool results that can only hold text: they follow the last result of a step. */
  let waiting: string[] = [];
  const addWaiting = () => {
    const parts = partsOf(waiting);
    waiting = [];
    if (parts.pictures.length > 0 || parts.note) raw.push(dialect.illustrated(dialect.said("user", SEEN), parts));
  };
  for (const item of items) {
    if (item.role !== "tool") addWaiting();
    const own = item.ids.length > 0 && dialect.canHoldPictures(item.raw);
    if (!own) waiting.push(...item.ids);
    const parts = own ? partsOf(item.ids) : NO_PARTS;
    raw.push(parts.pictures.length > 0 || parts.note ? dialect.illustrated(item.raw, parts) : item.raw);
  }
  addWaiting();
  return { body: dialect.withItems(body, raw), shown: [...shown.keys()] };
}

const NO_PARTS: Illustration = { pictures: [], note: "" };
const SEEN = "[IO: what the tools above brought]";

/** The ids of the pictures that a text refers to. What a model itself writes adds none. */
function idsIn(role: string, text: string): string[] {
  return role === "assistant" ? [] : [...new Set([...text.matchAll(MARK)].map(([, id]) => id!))];
}
