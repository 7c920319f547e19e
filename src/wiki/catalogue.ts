import { existsSync } from "node:fs";
import { basename, dirname } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { withFolder } from "../lib/pinned/folder.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import type { PageIndex } from "./page-index.ts";

/** Keeps `index.md`, the list of all pages, written anew a while after pages changed and never in the way of a save. */
export interface Catalogue {
  changed(): void;
  /** Writes it now if pages changed since, whoever changed them. */
  flush(): Promise<void>;
  stop(): void;
}

export interface CatalogueDeps {
  file: string;
  index: (work: (index: PageIndex) => Promise<void>) => Promise<void>;
  onError: (error: unknown) => void;
  delayMs?: number;
}

const SLICE = 2_000;

export function createCatalogue({ file, index, onError, delayMs = 2_000 }: CatalogueDeps): Catalogue {
  let timer: NodeJS.Timeout | undefined;
  let lastMs = 0;
  let writing: Promise<void> | undefined;

  const writeOnce = () =>
    index(async (pages) => {
      if (!pages.uncatalogued() && existsSync(file)) return;
      pages.catalogued();
      const started = performance.now();
      const text = await compose(pages);
      withFolder(dirname(file), (folder) => replaceFile(folder, basename(file), text));
      lastMs = performance.now() - started;
    });
  const write = () => {
    writing ??= writeOnce().finally(() => {
      writing = undefined;
    });
    return writing;
  };

  return {
    changed() {
      // A long list is written more seldom: it takes at most a fiftieth of the time.
      timer ??= setTimeout(
        () => {
          timer = undefined;
          write().catch(onError);
        },
        Math.max(delayMs, lastMs * 50),
      ).unref();
    },
    async flush() {
      await writing;
      await write();
    },
    stop: () => clearTimeout(timer),
  };
}

async function compose(pages: PageIndex): Promise<string> {
  const parts = ["# Index\n\nKept by IO from the pages themselves; what is written here by hand is lost.\n"];
  let folder = "";
  for (let after = ""; ; ) {
    const slice = pages.page("pages/", after, SLICE);
    for (const { path, title, tags } of slice) {
      const place = path.slice("pages/".length, path.lastIndexOf("/") + 1).replace(/\/$/, "");
      if (place !== folder) parts.push(`\n## ${place}\n\n`);
      folder = place;
      const tagged = tags.length > 0 ? ` (${tags.join(", ")})` : "";
      parts.push(`- [${title.replace(/[[\]\\]/g, "\\$&")}](<${path.replace(/[<>]/g, "\\$&")}>)${tagged}\n`);
    }
    if (slice.length < SLICE) return parts.join("");
    after = slice.at(-1)!.path;
    await turn();
  }
}
