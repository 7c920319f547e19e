import { lstatSync, mkdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { codeOf, messageOf, missing, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { makeFolder, withFolder } from "../lib/pinned/folder.ts";
import { tellAbsent } from "../lib/pinned/read.ts";
import { appendFile, removeFile, replaceFile, syncFolder } from "../lib/pinned/write.ts";
import { type Emit, newsOf } from "../protocol/events.ts";
import type { Contradiction } from "../protocol/page-review.ts";
import { type AccountDeps, createAccount } from "./account.ts";
import { createCatalogue } from "./catalogue.ts";
import { findContradictions } from "./contradictions.ts";
import { createIndexer } from "./indexer.ts";
import { removeLeftovers } from "./leftovers.ts";
import { linksOfPages, type PageLinks } from "./links.ts";
import { infoOf, type ListOptions, listPages, type PageInfo, type PageList } from "./list.ts";
import { metaOf } from "./markdown.ts";
import { type IsSecret, MAX_PAGE_BYTES, type PageDoc, readDoc, readPageFile, readText, stampOf } from "./page-file.ts";
import { type PagePlace, placeOf } from "./paths.ts";
import { type Hits, type SearchOptions, searchPages } from "./search.ts";
import { createSources, type Sources } from "./sources.ts";
import { SUMMARY_TOKENS, summarize } from "./summary.ts";
import { createVersions, type Version } from "./versions.ts";

export interface Page extends PageInfo {
  content: string;
}

/** IO's long memory: markdown files that a person may read and edit too. */
export interface Wiki {
  read(path: string): Page;
  /** A page's text, not counted as read; undefined where there is none. */
  peek(path: string): string | undefined;
  /** Makes or replaces a page; on disk when this returns. What it held before becomes a version. */
  write(path: string, content: string): PageInfo & { created: boolean; changed: boolean };
  delete(path: string): PageInfo;
  list(options?: ListOptions): Promise<PageList>;
  search(query: string, options?: SearchOptions): Promise<Hits>;
  /** What this page says differently from another page, or from another line of itself; found by search alone. */
  contradictions(path: string): Promise<Contradiction[]>;
  /** Which pages lead to which. */
  links(): Promise<PageLinks[]>;
  /** Earlier versions of a page, newest first, also of one that was deleted. */
  history(path: string): Version[];
  readVersion(path: string, version: string): string;
  restore(path: string, version: string): PageInfo & { changed: boolean };
  readonly sources: Sources;
  /** The pages used most and changed last, for a prompt; at most 1,500 tokens however many pages. */
  summary(maxTokens?: number): Promise<string>;
  /** Makes the index anew from the files, and waits until it is whole. */
  rebuild(): Promise<void>;
  /** Waits until every change so far is indexed. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export interface WikiDeps {
  /** IO_HOME/wiki. */
  root: string;
  emit: Emit;
  log: Log;
  /** Whether a file, by its number, is one of IO's own records. */
  isSecret?: IsSecret;
  /** Keeps account of which text of each page IO wrote itself. */
  known?: AccountDeps["known"];
  now?: () => number;
}

export const CATEGORIES = ["preferences", "projects", "people", "general"] as const;
const MOST_UNLISTED = 64;
const CLOSING_MS = 2_000;

/**
 * Opens the wiki. Its index is a file of its own, `.index.db`, and not a part of io.db: it holds nothing that the pages do
 * not say (but for how often each was read), so it can be deleted, breaks alone, needs no fsync, and a save never waits
 * for the writers of io.db.
 */
export function openWiki({ root: given, emit, log, isSecret = () => false, known, now = Date.now }: WikiDeps): Wiki {
  for (const category of CATEGORIES) mkdirSync(join(given, "pages", category), { recursive: true, mode: 0o700 });
  mkdirSync(join(given, "sources"), { recursive: true, mode: 0o700 });
  const root = realpathSync(given);
  const pages = realpathSync(join(root, "pages"));
  const versions = createVersions(join(root, ".versions"), isSecret);
  const sources = realpathSync(join(root, "sources"));
  const tidied = removeLeftovers({ root, pages, sources }).catch((error: unknown) =>
    log.warn("what killed writers left in the wiki could not all be taken away", { error: messageOf(error) }),
  );

  const account = createAccount({ pages, isSecret, known, log });
  const note = (what: string) => writeLog(root, `- ${new Date(now()).toISOString()} ${what}\n`, log);
  const tell = (type: "page.written" | "page.deleted", { path, title }: { path: string; title: string }) =>
    emit(newsOf(type, { path, title }));

  const indexer = createIndexer({
    pages,
    file: join(root, ".index.db"),
    versions,
    isSecret,
    log,
    onRead: account.saw,
    onIndexed: () => catalogue.changed(),
    onForeign: (path, doc) => tell(doc ? "page.written" : "page.deleted", doc ?? { path, ...metaOf(path, "") }),
  });
  const catalogue = createCatalogue({
    file: join(root, "index.md"),
    index: (work) =>
      indexer.view(async ({ index, fresh }) => {
        // Half a list is worse than an old one: it is written once everything is indexed.
        if (fresh.size < MOST_UNLISTED) await work(index);
      }),
    onError: (error) => log.warn("the wiki's index.md cannot be written", { error: messageOf(error) }),
  });

  catalogue.changed();
  account.begin();

  const existing = (place: PagePlace) => readExisting(place, isSecret);

  const wiki: Wiki = {
    read(path) {
      const place = placeOf(pages, path);
      const doc = existing(place);
      indexer.softly((index) => index.countRead(place.path, now()));
      return { ...infoOf(doc), content: doc.text };
    },
    peek: (path) => readText(placeOf(pages, path).file, isSecret),
    write(path, content) {
      const bytes = Buffer.byteLength(content);
      if (bytes > MAX_PAGE_BYTES) throw tooLarge(bytes);
      const place = placeOf(pages, path);
      const { created, changed } = indexer.changing(place.path, () => {
        const before = stampOf(place.file);
        if (before && before.nlink > 1n && isSecret(before.ino))
          throw new UserError(`${place.path} is another name of one of IO's own records, and no page.`);
        if (before?.size === BigInt(bytes) && readText(place.file, isSecret) === content)
          return { created: false, changed: false };
        account.willWrite(place, content);
        versions.keep(place.path, place.file);
        savePage(place, content, now());
        account.hasWritten(place);
        note(`${before ? "updated" : "created"} ${place.path} (${bytes} bytes)`);
        return { created: before === undefined, changed: true };
      });
      const info = infoOf({ ...place, ...metaOf(place.path, content), bytes, mtime: mtimeOf(place.file) });
      tell("page.written", info);
      return { ...info, created, changed };
    },
    delete(path) {
      const place = placeOf(pages, path);
      const info = infoOf(existing(place));
      indexer.changing(place.path, () => {
        account.willWrite(place, undefined);
        versions.keep(place.path, place.file);
        withFolder(dirname(place.file), (folder) => {
          removeFile(folder, basename(place.file));
          syncFolder(folder);
        });
        account.hasWritten(place);
        note(`deleted ${place.path}`);
      });
      tell("page.deleted", info);
      return info;
    },
    list: (options) => indexer.view((view) => listPages(view, options)),
    search: (query, options) => indexer.view((view) => searchPages(view, query, options)),
    contradictions(given) {
      const { path, file } = placeOf(pages, given);
      const last = versions.list(path, file)[0]?.version;
      return indexer.view((view) => findContradictions(view, path, last && versions.read(path, last)));
    },
    links: () => indexer.view(linksOfPages),
    history: (path) => {
      const place = placeOf(pages, path);
      const kept = versions.list(place.path, place.file);
      if (kept.length === 0) existing(place);
      return kept;
    },
    readVersion: (path, version) => versions.read(placeOf(pages, path).path, version),
    restore(path, version) {
      const place = placeOf(pages, path);
      return wiki.write(place.path, versions.read(place.path, version));
    },
    sources: createSources(sources, isSecret, (name, bytes) => note(`stored sources/${name} (${bytes} bytes)`)),
    summary: (maxTokens = SUMMARY_TOKENS) => indexer.view((view) => summarize(view, maxTokens, now())),
    rebuild: () => indexer.rebuild(),
    settled: () => indexer.drain(),
    async close() {
      await account.close();
      await Promise.race([tidied, delay(CLOSING_MS, undefined, { ref: false })]);
      await Promise.race([indexer.drain(), delay(CLOSING_MS, undefined, { ref: false })]);
      await catalogue.flush();
      catalogue.stop();
      await indexer.close();
    },
  };
  return wiki;
}

function tooLarge(bytes: number): UserError {
  const message = `The page would be ${bytes} bytes; a page holds at most ${MAX_PAGE_BYTES}. Split it into several.`;
  return new UserError(message, { trouble: "too large" });
}

function writeLog(root: string, line: string, log: Log): void {
  try {
    withFolder(root, (folder) => appendFile(folder, "log.md", line));
  } catch (error) {
    // What was done is done; the log is for people who read along.
    log.warn("the wiki's log.md cannot be written; if it is a link or no plain file, move it away", { error: messageOf(error) });
  }
}

function readExisting(place: PagePlace, isSecret: IsSecret): PageDoc {
  const doc = readDoc(place.path, place.file, isSecret);
  if (doc !== undefined) return doc;
  const read = readPageFile(place.file, isSecret);
  const absent = "absent" in read ? read.absent : "missing";
  if (absent === "too large") throw new UserError(`${place.path} is longer than ${MAX_PAGE_BYTES} bytes, too long for a page.`);
  if (absent === "not permitted") throw new UserError(`${place.path} cannot be read. Check the file's owner and mode.`);
  const instead = absent === "missing" ? "" : ` What is there ${tellAbsent(absent)}.`;
  throw missing(`There is no page ${place.path}.${instead} Search or list the wiki for the pages there are.`);
}

function savePage(place: PagePlace, content: string, atMs: number): void {
  const folder = makeFolder(dirname(place.file));
  try {
    // By the clock of the journal, which tells who wrote which version and what stood there before.
    replaceFile(folder, basename(place.file), content, { atMs });
  } catch (error) {
    if (codeOf(error) === "EISDIR") throw new UserError(`${place.path} is a folder. Choose another name.`);
    throw error;
  } finally {
    folder.close();
  }
}

function mtimeOf(file: string): number {
  return lstatSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
}
