import { createBreath } from "../lib/breath.ts";
import { UserError } from "../lib/errors.ts";
import type { View } from "./indexer.ts";
import { normalize, snippetAt, wordsOf } from "./normalize.ts";
import type { Candidate, Entry } from "./page-index.ts";
import { gramsOf } from "./trigrams.ts";

export interface Hit {
  path: string;
  title: string;
  tags: string[];
  /** The first match with 100 characters either side. */
  snippet: string;
  /** "text": the page contains the query verbatim. "words": it contains all words of the query. */
  match: "text" | "words";
  updatedAt: string;
}

export interface Hits {
  items: Hit[];
  /** Whether there are hits beyond the limit. */
  more: boolean;
}

export interface SearchOptions {
  limit?: number;
}

const DEFAULT_LIMIT = 20;
/** The best hits are chosen from this many of the newest hits. */
const RANKED = 300;
/** At least this many of the newest candidates are read when looking for "words" hits. */
const WORD_READS = 30;
const PHRASE_GRAMS = 8;
const WORD_GRAMS = 4;
const MAX_QUERY = 2_000;
const LONE_SURROGATE = /\p{Cs}/u;

/** A page that was read and matches. */
interface Match {
  path: string;
  snippet: string;
  rank: number;
  /** Set for a page that changed since it was indexed; the others are looked up in one query. */
  page?: Entry | undefined;
}

/** Pages that contain the query, best first; then, up to the limit, pages that contain all its words. */
export async function searchPages(view: View, query: string, options: SearchOptions = {}): Promise<Hits> {
  const limit = Math.max(1, Math.floor(options.limit ?? DEFAULT_LIMIT));
  if (query === "") throw new UserError("Say what to look for: the query is empty.");
  if (query.length > MAX_QUERY) throw new UserError(`The query is too long: at most ${MAX_QUERY} characters.`);
  const wanted = normalize(query);
  const enough = Math.max(limit + 1, RANKED);
  const found = await collect(view, phraseCandidates(view, wanted), { enough }, (text) => textMatch(text, wanted));
  const items = ranked(view, found, "text", (title) => titleRank(title, wanted));
  if (items.length >= limit) return { items: items.slice(0, limit), more: items.length > limit };

  const words = wordsOf(wanted);
  if (words.length === 0) return { items, more: false };
  const remaining = limit - items.length;
  const limits = { ...wordLimits(words, remaining, found.size > 0), except: found };
  const loose = await collect(view, wordCandidates(view, words), limits, (text, path) => wordsMatch(text, path, words));
  items.push(...ranked(view, loose, "words", (title) => words.filter((word) => title.includes(word)).length * 20));
  return { items: items.slice(0, limit), more: items.length > limit };
}

interface Limits {
  /** Stop after this many hits. */
  enough?: number;
  /** Stop after reading this many pages. */
  reads?: number;
  except?: ReadonlyMap<string, unknown>;
}

/** Reads candidates until there are enough hits. Pages changed since they were indexed are always read, once. */
async function collect(
  view: View,
  candidates: Iterable<Candidate[]>,
  { enough = Number.POSITIVE_INFINITY, reads: most = Number.POSITIVE_INFINITY, except }: Limits,
  judge: (text: string, path: string) => Omit<Match, "path"> | undefined,
): Promise<Map<string, Match>> {
  const found = new Map<string, Match>();
  const breathe = createBreath();
  let reads = 0;
  const take = async (path: string, text: string | undefined, page?: Entry) => {
    const match = text === undefined ? undefined : judge(text, path);
    if (match) found.set(path, { path, ...match, page });
    reads += 1;
    await breathe();
  };
  for (const path of view.fresh) {
    const page = except?.has(path) ? undefined : view.read(path);
    if (page) await take(path, page.text, page);
  }
  reads = 0;
  for (const batch of candidates) {
    for (const { path } of batch) {
      if (found.size >= enough || reads >= most) return found;
      if (!view.fresh.has(path) && !found.has(path) && !except?.has(path)) await take(path, view.text(path));
    }
  }
  return found;
}

/** Every page that may contain the text; if there are many, those with it in the title first. */
function* phraseCandidates({ index }: View, wanted: string): Generator<Candidate[]> {
  if (LONE_SURROGATE.test(wanted)) return yield* allPages(index);
  yield index.long();
  const grams = gramsOf(wanted);
  if (grams.length > 0) return yield* batches(index, index.selective([grams], PHRASE_GRAMS), wanted);
  yield index.titled(wanted, RANKED);
  // Most pages contain any one or two letters: the newest usually yield enough hits; otherwise use the index.
  yield index.newest(RANKED * 2);
  yield index.containingShort([wanted]);
}

function* wordCandidates({ index }: View, words: readonly string[]): Generator<Candidate[]> {
  yield index.long();
  const grams = words.map(gramsOf).filter((group) => group.length > 0);
  if (grams.length > 0) return yield* batches(index, index.selective(grams, WORD_GRAMS));
  yield index.newest(WORD_READS);
  // A single word was already searched for as the query itself.
  if (areAllShort(words)) yield index.containingShort(words.toSorted((a, b) => b.length - a.length).slice(0, WORD_GRAMS));
}

/** How many pages to read when searching for the words of a query. */
function wordLimits(words: readonly string[], remaining: number, isExtra: boolean): Pick<Limits, "enough" | "reads"> {
  // For short words the index is exact, so nearly every read is a hit: limit the hits instead.
  if (areAllShort(words)) return { enough: remaining + 1, reads: Math.max(RANKED, remaining * 2) };
  // If the query itself was found, word matches are a bonus: read fewer pages.
  return { reads: isExtra ? Math.ceil(remaining / 2) : Math.max(WORD_READS, remaining) };
}

/** Whether a query has several words, all too short for a trigram. */
function areAllShort(words: readonly string[]): boolean {
  return words.length > 1 && words.every((word) => gramsOf(word).length === 0);
}

const FIRST_BATCH = 32;

function* batches(index: View["index"], grams: readonly string[], wanted?: string): Generator<Candidate[]> {
  let before = Number.MAX_SAFE_INTEGER;
  for (let size = FIRST_BATCH; ; size *= 4) {
    const batch = index.containing(grams, before, size);
    // Beyond this point not every hit is read, so pages with the query in the title go first.
    if (size === FIRST_BATCH * 16 && batch.length > size / 4 && wanted) yield index.titled(wanted, RANKED);
    yield batch;
    if (batch.length < size) return;
    before = batch.at(-1)!.id;
  }
}

function* allPages(index: View["index"]): Generator<Candidate[]> {
  for (let after = ""; ; ) {
    const batch = index.page("pages/", after, 1_000);
    yield batch;
    if (batch.length < 1_000) return;
    after = batch.at(-1)!.path;
  }
}

function textMatch(text: string, wanted: string): Omit<Match, "path"> | undefined {
  const normalized = normalize(text);
  const at = normalized.indexOf(wanted);
  if (at < 0) return undefined;
  return { snippet: snippetAt(text, normalized, at, wanted.length), rank: textRank(normalized, wanted, at) };
}

function wordsMatch(text: string, path: string, words: readonly string[]): Omit<Match, "path"> | undefined {
  const normalized = normalize(text);
  const name = normalize(path);
  const places: number[] = [];
  for (const word of words) {
    const at = normalized.indexOf(word);
    if (at < 0 && !name.includes(word)) return undefined;
    places.push(at);
  }
  const first = Math.max(0, Math.min(...places));
  const rank = words.reduce((sum, word, at) => sum + textRank(normalized, word, places[at]!), 0) / words.length;
  return { snippet: snippetAt(text, normalized, first, 0), rank };
}

/** Exact title, then prefix, then substring; all rank above any hit in the text. */
function titleRank(title: string, wanted: string): number {
  if (title === wanted) return 4_000;
  if (title.startsWith(wanted)) return 3_000;
  return title.includes(wanted) ? 2_000 : 0;
}

const WORDY = /[\p{L}\p{N}_]/u;
const COUNTED_PLACES = 10;

/** Ranks by number of matches; whole words above parts of words, short pages above long ones. */
function textRank(normalized: string, wanted: string, first: number): number {
  let places = 0;
  let whole = 0;
  for (let at = first; at >= 0 && places < COUNTED_PLACES; at = normalized.indexOf(wanted, at + wanted.length)) {
    places += 1;
    if (!WORDY.test(normalized.charAt(at - 1)) && !WORDY.test(normalized.charAt(at + wanted.length))) whole += 1;
  }
  return Math.log2(1 + places) + 2 * Math.log2(1 + whole) - 0.3 * Math.log2(1 + normalized.length / 2_000);
}

/** Adds each page's index entry to its hit and sorts: best first, then newest. */
function ranked(view: View, found: ReadonlyMap<string, Match>, match: Hit["match"], rankTitle: (title: string) => number): Hit[] {
  const unknown = [...found.values()].flatMap(({ path, page }) => (page ? [] : [path]));
  const known = new Map(view.index.getAll(unknown).map((entry) => [entry.path, entry]));
  const scored = [...found.values()].flatMap(({ path, snippet, rank, page = known.get(path) }) =>
    page ? [{ page, snippet, rank: rank + rankTitle(normalize(page.title)) }] : [],
  );
  scored.sort((a, b) => b.rank - a.rank || b.page.mtime - a.page.mtime || (a.page.path < b.page.path ? -1 : 1));
  return scored.map(({ page: { path, title, tags, mtime }, snippet }) => {
    return { path, title, tags, snippet, match, updatedAt: new Date(mtime).toISOString() };
  });
}
