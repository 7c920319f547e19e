import { createBreath } from "../lib/breath.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { KnownPages, SeenPage } from "../store/known-pages.ts";
import { type IsSecret, readText, stampOf, stampText } from "./page-file.ts";
import { fileIn, type PageFile } from "./paths.ts";
import { walk } from "./watch.ts";

export interface OwnWritesDeps {
  pages: string;
  isSecret: IsSecret;
  /** Where it is stored; without it nothing is recorded. */
  known: Pick<KnownPages, "isBegun" | "begun" | "saw" | "willWrite" | "willWriteOverOwn" | "hasWritten"> | undefined;
  log: Log;
}

/** Records which text of each page IO wrote itself. A failure here never keeps a page from being saved or found. */
export function createOwnWrites({ pages, isSecret, known, log }: OwnWritesDeps) {
  /** Each file's stamp right after IO wrote it. While it is unchanged, the text is IO's own and need not be read. */
  const written = new Map<string, string>();
  let isClosed = false;
  let firstScan: Promise<void> | undefined;

  const safely = (work: (known: NonNullable<OwnWritesDeps["known"]>) => void) => {
    try {
      if (known) work(known);
    } catch (error) {
      log.warn("cannot record who changed a page", { error: messageOf(error) });
    }
  };

  /** Takes the current text of pages from before recording began as their starting point. */
  async function recordAllPages({ begun, saw }: NonNullable<OwnWritesDeps["known"]>): Promise<void> {
    const breathe = createBreath();
    for (const path of walk(pages)) {
      saw([{ path, text: readText(fileIn(pages, path), isSecret) }]);
      await breathe();
      if (isClosed) return;
    }
    begun();
  }

  return {
    saw: (seen: readonly SeenPage[]): void => safely(({ saw }) => saw(seen)),
    /** Call before replacing or removing a page. */
    willWrite: ({ path, file }: PageFile, text: string | undefined): void =>
      safely(({ willWrite, willWriteOverOwn }) => {
        const stamp = stampOf(file);
        if (stamp && written.get(path) === stampText(stamp)) willWriteOverOwn(path, text);
        else willWrite(path, readText(file, isSecret), text);
      }),
    hasWritten: ({ path, file }: PageFile): void =>
      safely(({ hasWritten }) => {
        hasWritten(path);
        const stamp = stampOf(file);
        if (stamp) written.set(path, stampText(stamp));
        else written.delete(path);
      }),
    begin(): void {
      if (!known || known.isBegun()) return;
      firstScan = recordAllPages(known).catch((error: unknown) =>
        log.warn("cannot read all pages; the next start tries again", { error: messageOf(error) }),
      );
    },
    async close(): Promise<void> {
      isClosed = true;
      await firstScan;
    },
  };
}
