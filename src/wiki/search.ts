import { setImmediate as turn } from "node:timers/promises";
import { UserError } from "../lib/errors.ts";
import { allWordsAt, fold, snippetAt, wordsOf } from "./fold.ts";
import type { View } from "./keeper.ts";
import type { PageDoc } from "./page-file.ts";
import { gramsOf, type Indexed } from "./page-index.ts";

export interface Hit {
  path: string;
  title: string;
  tags: string[];
  /** The first match with 100 characters either side. */
  snippet: string;
  /** "text": the page holds the query as it stands. "words": it holds only all of its words. */
  match: "text" | "words";
  updatedAt: string;
}

export interface Hits {
  items: Hit[];
  /** True when there are hits beyond the limit. */
  more: boolean;
}

export interface SearchOptions {
  limit?: number;
}

const DEFAULT_LIMIT = 20;
/** Among how many hits, the newest, the best are chosen; a query with fewer is ranked whole. */
const RANKED = 300;
/** How many pages may be read in looking for "words" hits, for each one wanted. */
const WORD_READS = 5;
const PHRASE_GRAMS = 8;
const WORD_GRAMS = 12;
const MAX_QUERY = 2_000;
const LONE_SURROGATE = /\p{Cs}/u;

interface Scored extends Hit {
  rank: number;
  mtime: number;
}

/** Every page whose text holds the query, best first; then, where there is room, pages that hold all its words. */
export async function searchPages(view: View, query: string, { limit = DEFAULT_LIMIT }: SearchOptions = {}): Promise<Hits> {
  if (query === "") throw new UserError("Say what to look for: the query is empty.");
  if (query.length > MAX_QUERY) throw new UserError(`The query is too long: at most ${MAX_QUERY} characters.`);
  const wanted = fold(query);
  const enough = Math.max(limit + 1, RANKED);

  const found = new Map<string, Scored>();
  await collect(view, phraseCandidates(view, wanted), found, { enough }, (doc) => textHit(doc, wanted));
  const items = [...found.values()].sort(better);
  if (items.length > limit) return { items: items.slice(0, limit).map(plain), more: true };

  const words = wordsOf(wanted);
  const more = new Map<string, Scored>();
  if (words.length > 0 && items.length < limit) {
    const room = limit - items.length;
    const rules = { enough: room + 1, reads: (room + 1) * WORD_READS, except: found };
    await collect(view, wordCandidates(view, words), more, rules, (doc) => wordsHit(doc, words));
  }
  const all = [...items, ...[...more.values()].sort(better)];
  return { items: all.slice(0, limit).map(plain), more: all.length > limit };
}

/** Reads candidates until enough of them are hits. A page that changed since it was indexed is always read, once. */
async function collect(
  view: View,
  candidates: Iterable<Indexed[]>,
  into: Map<string, Scored>,
  rules: { enough: number; reads?: number; except?: ReadonlyMap<string, unknown> },
  judge: (doc: PageDoc) => Scored | undefined,
): Promise<void> {
  let reads = 0;
  const examine = async (path: string) => {
    if (into.has(path) || rules.except?.has(path)) return;
    reads += 1;
    if (reads % 500 === 0) await turn();
    const doc = view.read(path);
    const hit = doc && judge(doc);
    if (hit) into.set(path, hit);
  };
  for (const path of view.fresh) await examine(path);
  reads = 0;
  for (const batch of candidates) {
    for (const { path } of batch) {
      if (into.size >= rules.enough || reads >= (rules.reads ?? Number.POSITIVE_INFINITY)) return;
      if (!view.fresh.has(path)) await examine(path);
    }
  }
}

/** Pages that may hold the text, surely all that do, those with it in the title first where there are many. */
function* phraseCandidates({ index }: View, wanted: string): Generator<Indexed[]> {
  if (LONE_SURROGATE.test(wanted)) return yield* everything(index);
  yield index.long();
  const grams = gramsOf(wanted);
  if (grams.length > 0) return yield* batches(index, index.rarest(grams, PHRASE_GRAMS), wanted);
  yield index.titled(wanted, RANKED);
  // A letter or two stand in most pages: the newest usually hold enough of them, and the rare case is looked up.
  yield index.newest(RANKED * 2);
  yield index.holdingShort(wanted);
}

function* wordCandidates({ index }: View, words: readonly string[]): Generator<Indexed[]> {
  yield index.long();
  const grams = [...new Set(words.flatMap(gramsOf))];
  if (grams.length > 0) yield* batches(index, index.rarest(grams, WORD_GRAMS));
  else yield index.newest(RANKED);
}

const FIRST_BATCH = 64;

function* batches(index: View["index"], grams: readonly string[], wanted?: string): Generator<Indexed[]> {
  let before = Number.MAX_SAFE_INTEGER;
  for (let size = FIRST_BATCH; ; size *= 4) {
    const batch = index.holding(grams, before, size);
    const many = size === FIRST_BATCH * 4 && batch.length === size;
    if (many && wanted) yield index.titled(wanted, RANKED);
    yield batch;
    if (batch.length < size) return;
    before = batch.at(-1)!.id;
  }
}

function* everything(index: View["index"]): Generator<Indexed[]> {
  for (let after = ""; ; ) {
    const batch = index.page("pages/", after, 1_000);
    yield batch;
    if (batch.length < 1_000) return;
    after = batch.at(-1)!.path;
  }
}

function textHit(doc: PageDoc, wanted: string): Scored | undefined {
  const folded = fold(doc.text);
  const at = folded.indexOf(wanted);
  if (at < 0) return undefined;
  return {
    ...hit(doc, folded, at, wanted.length, "text"),
    rank: titleRank(fold(doc.title), wanted) + textRank(folded, wanted, at),
  };
}

function wordsHit(doc: PageDoc, words: readonly string[]): Scored | undefined {
  const folded = fold(doc.text);
  const named = `${folded}\n${fold(doc.path)}`;
  if (allWordsAt(named, words) < 0) return undefined;
  const first = words.map((word) => folded.indexOf(word)).filter((at) => at >= 0);
  const at = first.length > 0 ? Math.min(...first) : 0;
  const inTitle = words.filter((word) => fold(doc.title).includes(word)).length;
  const often = words.reduce((sum, word) => sum + textRank(folded, word, folded.indexOf(word)), 0);
  return { ...hit(doc, folded, at, 0, "words"), rank: inTitle * 20 + often / words.length };
}

function hit(doc: PageDoc, folded: string, at: number, length: number, match: Hit["match"]) {
  const { path, title, tags, mtime } = doc;
  return {
    path,
    title,
    tags,
    snippet: snippetAt(doc.text, folded, at, length),
    match,
    updatedAt: new Date(mtime).toISOString(),
    mtime,
  };
}

/** The title being the query beats beginning with it beats holding it; all beat any hit in the text alone. */
function titleRank(title: string, wanted: string): number {
  if (title === wanted) return 4_000;
  if (title.startsWith(wanted)) return 3_000;
  return title.includes(wanted) ? 2_000 : 0;
}

const WORDY = /[\p{L}\p{N}_]/u;

/** More places count for more, a whole word more than a part of one, a short page more than a long one. */
function textRank(folded: string, wanted: string, first: number): number {
  let places = 0;
  let whole = 0;
  for (let at = first; at >= 0 && places < 50; at = folded.indexOf(wanted, at + wanted.length)) {
    places += 1;
    const alone = !WORDY.test(folded.charAt(at - 1)) && !WORDY.test(folded.charAt(at + wanted.length));
    if (alone) whole += 1;
  }
  return Math.log2(1 + places) + 2 * Math.log2(1 + whole) - 0.3 * Math.log2(1 + folded.length / 2_000);
}

function better(a: Scored, b: Scored): number {
  return b.rank - a.rank || b.mtime - a.mtime || (a.path < b.path ? -1 : 1);
}

function plain({ path, title, tags, snippet, match, updatedAt }: Scored): Hit {
  return { path, title, tags, snippet, match, updatedAt };
}
