import { existsSync } from "node:fs";
import { basename, dirname } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { withFolder } from "../lib/pinned/folder.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import type { PageIndex } from "./page-index.ts";

/** Rewrites `index.md`, the list of all pages, a while after pages change. Never blocks a save. */
export interface Catalogue {
  changed(): void;
  /** Writes it now if any page changed since the last time. */
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
      // Back off for a long list: writing takes at most a fiftieth of the time.
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
  let current = "";
  for (let after = ""; ; ) {
    const slice = pages.page("pages/", after, SLICE);
    for (const { path, title, tags } of slice) {
      const section = path.slice("pages/".length, path.lastIndexOf("/") + 1).replace(/\/$/, "");
      if (section !== current) parts.push(`\n## ${section}\n\n`);
      current = section;
      const tagged = tags.length > 0 ? ` (${tags.join(", ")})` : "";
      parts.push(`- [${title.replace(/[[\]\\]/g, "\\$&")}](<${path.replace(/[<>]/g, "\\$&")}>)${tagged}\n`);
    }
    if (slice.length < SLICE) return parts.join("");
    after = slice.at(-1)!.path;
    await turn();
  }
}
