import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Log } from "../../src/lib/log.ts";
import type { News } from "../../src/protocol/events.ts";
import { wikiTools } from "../../src/wiki/tools.ts";
import { openWiki, type Wiki } from "../../src/wiki/wiki.ts";
import { removeFolder } from "./home.ts";

const quiet = () => {};
export const silent: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

export interface TestWiki {
  wiki: Wiki;
  root: string;
  news: News[];
  /** Closes the wiki and opens it again, as after a restart. */
  reopen(between?: () => void): Promise<Wiki>;
}

/** Creates a wiki in a new folder. It is closed and removed after the test. */
export function makeWiki(prepare?: (root: string) => void): TestWiki {
  const home = mkdtempSync(join(tmpdir(), "io-wiki-"));
  const root = join(home, "wiki");
  const news: News[] = [];
  prepare?.(root);
  const open = () => openWiki({ root, emit: (item) => news.push(item), log: silent });
  let wiki = open();
  onTestFinished(async () => {
    await wiki.close();
    await removeFolder(home);
  });
  return {
    wiki,
    root,
    news,
    async reopen(between) {
      await wiki.close();
      between?.();
      wiki = open();
      return wiki;
    },
  };
}

/** The tools of a wiki, without the records of who read what. */
export const toolsOf = (wiki: Wiki) =>
  wikiTools({ wiki, contradictions: { check: wiki.contradictions }, provenance: { mark: (_, { content }) => content } });

/** Waits until a condition holds. Throws an error that names it if it never does. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const end = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`waited too long until ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
