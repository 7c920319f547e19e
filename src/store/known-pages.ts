import { createHash } from "node:crypto";
import type { PageChange } from "../protocol/pages.ts";
import type { Store } from "./open.ts";
import { nameOf } from "./page-writers.ts";
import type { State } from "./state.ts";

/** A page changed by somebody unknown to IO and not reviewed since. */
export interface OutsideChange {
  name: string;
  change: PageChange["change"];
  /** The number of detected changes. */
  changes: number;
  /** The hash of the text before the first change; "" if there was none. */
  before: string;
  /** When the first and the last change were detected. */
  beganAt: string;
  at: string;
}

export interface SeenPage {
  path: string;
  /** Undefined if the page is gone. */
  text: string | undefined;
}

export interface KnownPagesDeps {
  store: Store;
  state: State;
  /** Called, in the same transaction, for a page changed by somebody unknown to IO. */
  onOutside: (name: string) => void;
  now?: () => Date;
}

const FIRST_LOOK = "known-pages:first-look";
const COLUMNS = "name, change, changes, before, began_at AS beganAt, at";

/** BLAKE2 takes half the time of SHA-256, and a page may have 10 MB. */
export const hashOf = (text: string | undefined): string =>
  text === undefined ? "" : createHash("blake2b512").update(text).digest("hex").slice(0, 64);

/**
 * Tells IO's own page changes from others. Stores the hash of new text before writing the file, so that after a crash in
 * between IO still recognises its own change.
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
    /** Whether all pages from before the tracking began have been recorded. */
    isBegun: (): boolean => state.get(FIRST_LOOK) !== undefined,
    begun: (): void => state.set(FIRST_LOOK, now().toISOString()),
    /** Records pages as they are on disk now. */
    saw(pages: readonly SeenPage[]): void {
      if (pages.length === 0) return;
      const isFirst = state.get(FIRST_LOOK) === undefined;
      store.soft(() => {
        for (const page of pages) look(page, isFirst);
      });
    },
    /** Call before IO writes this text, or with undefined removes the page. `seen` is the current text. */
    willWrite(path: string, seen: string | undefined, text: string | undefined): void {
      store.soft(() => {
        look({ path, text: seen }, state.get(FIRST_LOOK) === undefined);
        expect.run(nameOf(path), hashOf(seen), hashOf(text));
      });
    },
    /** The same if the current text is what IO wrote last. */
    willWriteOverOwn(path: string, text: string | undefined): void {
      store.soft(() => expectNext.run(hashOf(text), nameOf(path)));
    },
    /** Call after the write: any later change is somebody else's. */
    hasWritten(path: string): void {
      store.soft(() => {
        settle.run(nameOf(path));
        settleRemoved.run(nameOf(path));
      });
    },
    outside: (limit: number) => all.all(limit) as unknown as OutsideChange[],
    outsideOf: (path: string) => one.get(nameOf(path)) as OutsideChange | undefined,
    /** Marks the page as reviewed by a person. */
    reviewed: (path: string): void => void remove.run(nameOf(path)),
  };
}
export type KnownPages = ReturnType<typeof createKnownPages>;
