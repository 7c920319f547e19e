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
import { createCatalogue } from "./catalogue.ts";
import { findContradictions } from "./contradictions.ts";
import { createIndexer } from "./indexer.ts";
import { removeLeftovers } from "./leftovers.ts";
import { linksOfPages, type PageLinks } from "./links.ts";
import { infoOf, type ListOptions, listPages, type PageInfo, type PageList } from "./list.ts";
import { metaOf } from "./markdown.ts";
import { createOwnWrites, type OwnWritesDeps } from "./own-writes.ts";
import { type IsSecret, MAX_PAGE_BYTES, type PageDoc, readDoc, readPageFile, readText, stampOf } from "./page-file.ts";
import { type PageFile, resolvePage } from "./paths.ts";
import { type Hits, type SearchOptions, searchPages } from "./search.ts";
import { createSources, type Sources } from "./sources.ts";
import { SUMMARY_TOKENS, summarize } from "./summary.ts";
import { createVersions, type Version } from "./versions.ts";

export interface Page extends PageInfo {
  content: string;
}

/** IO's long-term memory: markdown files that a person can read and edit too. */
export interface Wiki {
  read(path: string): Page;
  /** A page's text, not counted as a read; undefined if there is no page. */
  peek(path: string): string | undefined;
  /** Creates or replaces a page; on disk when this returns. The previous text becomes a version. */
  write(path: string, content: string): PageInfo & { created: boolean; changed: boolean };
  delete(path: string): PageInfo;
  list(options?: ListOptions): Promise<PageList>;
  search(query: string, options?: SearchOptions): Promise<Hits>;
  /** Statements of this page that conflict with another page or another line; found without a model. */
  contradictions(path: string): Promise<Contradiction[]>;
  /** Which pages link to which. */
  links(): Promise<PageLinks[]>;
  /** Earlier versions of a page, newest first; works for deleted pages too. */
  history(path: string): Version[];
  readVersion(path: string, version: string): string;
  restore(path: string, version: string): PageInfo & { changed: boolean };
  readonly sources: Sources;
  /** The most used and most recently changed pages, for a prompt; at most 1,500 tokens. */
  summary(maxTokens?: number): Promise<string>;
  /** Rebuilds the index from the files and waits until it is complete. */
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
  /** Whether an inode is one of IO's own records. */
  isSecret?: IsSecret;
  /** Records which text of each page IO wrote itself. */
  known?: OwnWritesDeps["known"];
  now?: () => number;
}

export const CATEGORIES = ["preferences", "projects", "people", "general"] as const;
const MAX_UNINDEXED = 64;
const CLOSING_MS = 2_000;

/**
 * Opens the wiki. Its index is a separate file, `.index.db`, because apart from read counts it can be rebuilt from the pages:
 * it can be deleted, needs no fsync, cannot damage io.db, and a save never waits for writers of io.db.
 */
export function openWiki({ root: given, emit, log, isSecret = () => false, known, now = Date.now }: WikiDeps): Wiki {
  for (const category of CATEGORIES) mkdirSync(join(given, "pages", category), { recursive: true, mode: 0o700 });
  mkdirSync(join(given, "sources"), { recursive: true, mode: 0o700 });
  const root = realpathSync(given);
  const pages = realpathSync(join(root, "pages"));
  const versions = createVersions(join(root, ".versions"), isSecret);
  const sources = realpathSync(join(root, "sources"));
  const cleanedUp = removeLeftovers({ root, pages, sources }).catch((error: unknown) =>
    log.warn("cannot remove all temporary files that killed writers left in the wiki", { error: messageOf(error) }),
  );

  const ownWrites = createOwnWrites({ pages, isSecret, known, log });
  const appendToLog = (what: string) => writeLog(root, `- ${new Date(now()).toISOString()} ${what}\n`, log);
  const announce = (type: "page.written" | "page.deleted", { path, title }: { path: string; title: string }) =>
    emit(newsOf(type, { path, title }));

  const indexer = createIndexer({
    pages,
    file: join(root, ".index.db"),
    versions,
    isSecret,
    log,
    onRead: ownWrites.saw,
    onIndexed: () => catalogue.changed(),
    onForeign: (path, doc) => announce(doc ? "page.written" : "page.deleted", doc ?? { path, ...metaOf(path, "") }),
  });
  const catalogue = createCatalogue({
    file: join(root, "index.md"),
    index: (work) =>
      indexer.view(async ({ index, fresh }) => {
        // An outdated list is better than an incomplete one: wait until nearly everything is indexed.
        if (fresh.size < MAX_UNINDEXED) await work(index);
      }),
    onError: (error) => log.warn("cannot write the wiki's index.md", { error: messageOf(error) }),
  });

  catalogue.changed();
  ownWrites.begin();

  const existing = (page: PageFile) => readExisting(page, isSecret);

  const wiki: Wiki = {
    read(path) {
      const page = resolvePage(pages, path);
      const doc = existing(page);
      indexer.tryWith((index) => index.countRead(page.path, now()));
      return { ...infoOf(doc), content: doc.text };
    },
    peek: (path) => readText(resolvePage(pages, path).file, isSecret),
    write(path, content) {
      const bytes = Buffer.byteLength(content);
      if (bytes > MAX_PAGE_BYTES) throw tooLarge(bytes);
      const page = resolvePage(pages, path);
      const { created, changed } = indexer.changing(page.path, () => {
        const before = stampOf(page.file);
        if (before && before.nlink > 1n && isSecret(before.ino))
          throw new UserError(`${page.path} is another name of one of IO's own records, and no page.`);
        if (before?.size === BigInt(bytes) && readText(page.file, isSecret) === content)
          return { created: false, changed: false };
        ownWrites.willWrite(page, content);
        versions.keep(page.path, page.file);
        savePage(page, content, now());
        ownWrites.hasWritten(page);
        appendToLog(`${before ? "updated" : "created"} ${page.path} (${bytes} bytes)`);
        return { created: before === undefined, changed: true };
      });
      const info = infoOf({ ...page, ...metaOf(page.path, content), bytes, mtime: mtimeOf(page.file) });
      announce("page.written", info);
      return { ...info, created, changed };
    },
    delete(path) {
      const page = resolvePage(pages, path);
      const info = infoOf(existing(page));
      indexer.changing(page.path, () => {
        ownWrites.willWrite(page, undefined);
        versions.keep(page.path, page.file);
        withFolder(dirname(page.file), (folder) => {
          removeFile(folder, basename(page.file));
          syncFolder(folder);
        });
        ownWrites.hasWritten(page);
        appendToLog(`deleted ${page.path}`);
      });
      announce("page.deleted", info);
      return info;
    },
    list: (options) => indexer.view((view) => listPages(view, options)),
    search: (query, options) => indexer.view((view) => searchPages(view, query, options)),
    contradictions(given) {
      const { path, file } = resolvePage(pages, given);
      const last = versions.list(path, file)[0]?.version;
      return indexer.view((view) => findContradictions(view, path, last && versions.read(path, last)));
    },
    links: () => indexer.view(linksOfPages),
    history: (path) => {
      const page = resolvePage(pages, path);
      const kept = versions.list(page.path, page.file);
      if (kept.length === 0) existing(page);
      return kept;
    },
    readVersion: (path, version) => versions.read(resolvePage(pages, path).path, version),
    restore(path, version) {
      const page = resolvePage(pages, path);
      return wiki.write(page.path, versions.read(page.path, version));
    },
    sources: createSources(sources, isSecret, (name, bytes) => appendToLog(`stored sources/${name} (${bytes} bytes)`)),
    summary: (maxTokens = SUMMARY_TOKENS) => indexer.view((view) => summarize(view, maxTokens, now())),
    rebuild: () => indexer.rebuild(),
    settled: () => indexer.drain(),
    async close() {
      await ownWrites.close();
      await Promise.race([cleanedUp, delay(CLOSING_MS, undefined, { ref: false })]);
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
    // The change itself succeeded; the log is only for people to read.
    log.warn("cannot write the wiki's log.md; if it is a link or not a plain file, move it away", { error: messageOf(error) });
  }
}

function readExisting(page: PageFile, isSecret: IsSecret): PageDoc {
  const doc = readDoc(page.path, page.file, isSecret);
  if (doc !== undefined) return doc;
  const read = readPageFile(page.file, isSecret);
  const absent = "absent" in read ? read.absent : "missing";
  if (absent === "too large") throw new UserError(`${page.path} is longer than ${MAX_PAGE_BYTES} bytes, too long for a page.`);
  if (absent === "not permitted") throw new UserError(`${page.path} cannot be read. Check the file's owner and mode.`);
  const instead = absent === "missing" ? "" : ` What is there ${tellAbsent(absent)}.`;
  throw missing(`There is no page ${page.path}.${instead} Search or list the wiki for the pages there are.`);
}

function savePage(page: PageFile, content: string, atMs: number): void {
  const folder = makeFolder(dirname(page.file));
  try {
    // Use the journal's clock, so that versions can be matched to whoever wrote them.
    replaceFile(folder, basename(page.file), content, { atMs });
  } catch (error) {
    if (codeOf(error) === "EISDIR") throw new UserError(`${page.path} is a folder. Choose another name.`);
    throw error;
  } finally {
    folder.close();
  }
}

function mtimeOf(file: string): number {
  return lstatSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
}
