import { conflict, missing } from "../lib/errors.ts";
import type { Emit } from "../protocol/events.ts";
import type { PageReview, ReviewVerdict } from "../protocol/page-review.ts";
import type { EditChannel } from "../protocol/pages.ts";
import type { KnownPages } from "../store/known-pages.ts";
import type { Store } from "../store/open.ts";
import { nameOf } from "../store/page-writers.ts";
import type { Contradictions } from "./noted-contradictions.ts";
import { createUnreviewed, EPOCH, reviewedKey, type Unreviewed, type UnreviewedDeps } from "./unreviewed.ts";
import type { Wiki } from "./wiki.ts";

export interface PageReviewsDeps extends UnreviewedDeps {
  store: Pick<Store, "transaction">;
  wiki: Pick<Wiki, "history" | "restore" | "delete" | "write" | "readVersion">;
  known: Pick<KnownPages, "outside" | "outsideOf" | "reviewed">;
  contradictions: Pick<Contradictions, "check" | "noted">;
  emit: Emit;
  now?: () => Date;
}

/**
 * Reviews, page by page, what agents wrote since a person last markReviewed, and what somebody unknown to IO changed. The person
 * keeps, changes or exactly reverts it.
 */
export function createPageReviews(deps: PageReviewsDeps) {
  const { store, wiki, writers, known: pages, contradictions, state, emit, now = () => new Date() } = deps;
  const { open, itemOf, isPreviousTextLost } = createUnreviewed(deps);

  function findUnreviewed(path: string, id: string | undefined): { name: string; changed: Unreviewed; item: PageReview } {
    const name = nameOf(path);
    const changed = open(name).get(name);
    const [latest] = writers.changes({ since: state.get(reviewedKey(name)) ?? EPOCH, limit: 1, by: "agent", path: name });
    if (!changed && latest) throw conflict(`A person changed ${name}.md since. Change it by hand: io wiki history ${name}.md`);
    if (!changed) throw missing(`Nobody changed ${name}.md since you last looked. List what is left: io wiki review`);
    const item = itemOf(name, changed);
    if (id !== undefined && id !== item.id)
      throw conflict(`${name}.md was changed again since you looked at it. Look once more: io wiki review`);
    return { name, changed, item };
  }

  /** Removes a page from everybody's list. */
  function markReviewed(name: string, at: string): void {
    state.set(reviewedKey(name), at);
    pages.reviewed(name);
    emit({ type: "review.changed", data: { path: `${name}.md` } });
  }

  const reviews = {
    list: (): PageReview[] => [...open()].map(([name, changed]) => itemOf(name, changed)),
    /** The review with this id; undefined once somebody decided it or the page changed again. */
    find: (id: string): PageReview | undefined => reviews.list().find((each) => each.id === id),
    /** Accepts the page as it is. */
    keep(path: string, id?: string): PageReview {
      const { name, item } = findUnreviewed(path, id);
      store.transaction(() => markReviewed(name, now().toISOString()));
      return item;
    },
    /** Replaces the page's text. */
    async change(path: string, content: string, channel: EditChannel, id?: string): Promise<PageReview> {
      const { name, item } = findUnreviewed(path, id);
      const { updatedAt } = wiki.write(item.path, content);
      const at = updatedAt > item.at ? updatedAt : now().toISOString();
      store.transaction(() => {
        writers.edited(item.path, "written", { channel, at });
        markReviewed(name, at);
      });
      await contradictions.check(item.path);
      return item;
    },
    /** Restores the previous text byte by byte, or deletes a page that did not exist before. */
    revert(path: string, channel: EditChannel, id?: string): PageReview {
      const { name, changed, item } = findUnreviewed(path, id);
      if (isPreviousTextLost(name, item.before, changed))
        throw conflict(`What stood in ${item.path} before is no longer kept. Its history: io wiki history ${item.path}`);
      if (item.before !== null) wiki.restore(item.path, item.before);
      else if (item.change === "written") wiki.delete(item.path);
      const at = now().toISOString();
      store.transaction(() => {
        writers.edited(item.path, item.before === null ? "deleted" : "written", { channel, at });
        markReviewed(name, at);
      });
      return item;
    },
    async decide(given: ReviewVerdict, channel: EditChannel): Promise<PageReview> {
      const { path, id, verdict } = given;
      if (verdict === "change") return reviews.change(path, given.content, channel, id);
      return verdict === "keep" ? reviews.keep(path, id) : reviews.revert(path, channel, id);
    },
  };
  return reviews;
}

export type PageReviews = ReturnType<typeof createPageReviews>;
