import { createHash } from "node:crypto";
import type { PageChange } from "../protocol/pages.ts";
import type { Store } from "./open.ts";
import { nameOf } from "./page-writers.ts";
import type { State } from "./state.ts";

/** A page that somebody changed whom IO does not know, and at which no person has looked since. */
export interface OutsideChange {
  name: string;
  change: PageChange["change"];
  /** How many changes were noticed. */
  changes: number;
  /** The hash of the text that stood before the first of them; "" for none. */
  before: string;
  /** When the first and the last of them were noticed. */
  beganAt: string;
  at: string;
}

export interface SeenPage {
  path: string;
  /** Undefined where there is no page any more. */
  text: string | undefined;
}

export interface KnownPagesDeps {
  store: Store;
  state: State;
  /** Told in its transaction of a page that somebody changed whom IO does not know. */
  onOutside: (name: string) => void;
  now?: () => Date;
}

const FIRST_LOOK = "known-pages:first-look";
const COLUMNS = "name, change, changes, before, began_at AS beganAt, at";

/** Blake2 takes half of the time that SHA-256 takes, and a page may hold 10 MB. */
export const hashOf = (text: string | undefined): string =>
  text === undefined ? "" : createHash("blake2b512").update(text).digest("hex").slice(0, 64);

/**
 * Tells the changes of pages that IO makes from all others: the hash of what IO is about to write is kept before the file is
 * written, so that a crash in between makes no stranger of IO itself.
 */
export function createKnownPages({ store, state, onOutside, now = () => new Date() }: KnownPagesDeps) {
  const { db } = store;
  const find = db.prepare("SELECT hash, next FROM known_pages WHERE name = ?");
  const expect = db.prepare(
    "INSERT INTO known_pages (name, hash, next) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET next = excluded.next",
  );
  const know = db.prepare(
    "INSERT INTO known_pages (name, hash) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, next = NULL",
  );
  const expectNext = db.prepare("UPDATE known_pages SET next = ? WHERE name = ?");
  const settle = db.prepare("UPDATE known_pages SET hash = next, next = NULL WHERE name = ? AND next <> ''");
  const forget = db.prepare("DELETE FROM known_pages WHERE name = ?");
  const settleRemoved = db.prepare("DELETE FROM known_pages WHERE name = ? AND next = ''");
  const note = db.prepare(`INSERT INTO outside_changes (name, change, changes, before, began_at, at) VALUES (?, ?, 1, ?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET change = excluded.change, changes = changes + 1, at = excluded.at`);
  const all = db.prepare(`SELECT ${COLUMNS} FROM outside_changes ORDER BY at DESC LIMIT ?`);
  const one = db.prepare(`SELECT ${COLUMNS} FROM outside_changes WHERE name = ?`);
  const remove = db.prepare("DELETE FROM outside_changes WHERE name = ?");

  const remember = (name: string, hash: string) => (hash === "" ? forget.run(name) : know.run(name, hash));

  function look({ path, text }: SeenPage, isFirst: boolean): void {
    const name = nameOf(path);
    const hash = hashOf(text);
    const known = find.get(name) as { hash: string; next: string | null } | undefined;
    const before = known?.hash ?? "";
    if (hash === before || hash === known?.next || isFirst) {
      if (hash !== before || (known === undefined && hash !== "")) remember(name, hash);
      return;
    }
    const at = now().toISOString();
    note.run(name, hash === "" ? "deleted" : "written", before, at, at);
    remember(name, hash);
    onOutside(name);
  }

  return {
    /** Whether the pages that were there before IO kept track have all been looked at. */
    isBegun: (): boolean => state.get(FIRST_LOOK) !== undefined,
    begun: (): void => state.set(FIRST_LOOK, now().toISOString()),
    /** Pages as they are on disk now. */
    saw(pages: readonly SeenPage[]): void {
      if (pages.length === 0) return;
      const isFirst = state.get(FIRST_LOOK) === undefined;
      store.soft(() => {
        for (const page of pages) look(page, isFirst);
      });
    },
    /** IO is about to write this, or with undefined to remove the page; what stands there now was `seen`. */
    willWrite(path: string, seen: string | undefined, text: string | undefined): void {
      store.soft(() => {
        look({ path, text: seen }, state.get(FIRST_LOOK) === undefined);
        expect.run(nameOf(path), hashOf(seen), hashOf(text));
      });
    },
    /** The same where what stands there now is what IO wrote last. */
    willWriteOverOwn(path: string, text: string | undefined): void {
      store.soft(() => expectNext.run(hashOf(text), nameOf(path)));
    },
    /** What IO was about to write stands there now: a change after this one is somebody else's. */
    hasWritten(path: string): void {
      store.soft(() => {
        settle.run(nameOf(path));
        settleRemoved.run(nameOf(path));
      });
    },
    outside: (limit: number) => all.all(limit) as unknown as OutsideChange[],
    outsideOf: (path: string) => one.get(nameOf(path)) as OutsideChange | undefined,
    /** A person has looked at the page. */
    reviewed: (path: string): void => void remove.run(nameOf(path)),
  };
}
export type KnownPages = ReturnType<typeof createKnownPages>;
