import { createBreath } from "../lib/breath.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { KnownPages, SeenPage } from "../store/known-pages.ts";
import { type IsSecret, readText, stampOf, stampText } from "./page-file.ts";
import { fileIn, type PagePlace } from "./paths.ts";
import { walk } from "./watch.ts";

export interface AccountDeps {
  pages: string;
  isSecret: IsSecret;
  /** Where it is written down; without it no account is kept. */
  known: Pick<KnownPages, "isBegun" | "begun" | "saw" | "willWrite" | "willWriteOverOwn" | "hasWritten"> | undefined;
  log: Log;
}

/** The account of which text of each page IO wrote itself. It must not keep a page from being saved or found. */
export function createAccount({ pages, isSecret, known, log }: AccountDeps) {
  /** The state of each file right after IO wrote it: while it stands, the text need not be read to know whose it is. */
  const written = new Map<string, string>();
  let isClosed = false;
  let firstLook: Promise<void> | undefined;

  const safely = (work: (known: NonNullable<AccountDeps["known"]>) => void) => {
    try {
      if (known) work(known);
    } catch (error) {
      log.warn("it could not be written down who changed a page", { error: messageOf(error) });
    }
  };

  /** The pages that were there before there was an account: whatever they say now is where it begins. */
  async function lookAtAll({ begun, saw }: NonNullable<AccountDeps["known"]>): Promise<void> {
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
    /** IO is about to replace or to remove a page. */
    willWrite: ({ path, file }: PagePlace, text: string | undefined): void =>
      safely(({ willWrite, willWriteOverOwn }) => {
        const stamp = stampOf(file);
        if (stamp && written.get(path) === stampText(stamp)) willWriteOverOwn(path, text);
        else willWrite(path, readText(file, isSecret), text);
      }),
    hasWritten: ({ path, file }: PagePlace): void =>
      safely(({ hasWritten }) => {
        hasWritten(path);
        const stamp = stampOf(file);
        if (stamp) written.set(path, stampText(stamp));
        else written.delete(path);
      }),
    begin(): void {
      if (!known || known.isBegun()) return;
      firstLook = lookAtAll(known).catch((error: unknown) =>
        log.warn("the pages could not all be looked at; the next start tries again", { error: messageOf(error) }),
      );
    },
    async close(): Promise<void> {
      isClosed = true;
      await firstLook;
    },
  };
}
