import type { Paths } from "../home/paths.ts";
import { createKnownPages } from "../store/known-pages.ts";
import { createPageWriters } from "../store/page-writers.ts";
import { createState } from "../store/state.ts";
import { createWorkRecords } from "../store/work-records.ts";
import { createContradictions } from "../wiki/noted-contradictions.ts";
import { createProvenance } from "../wiki/provenance.ts";
import { createPageReviews } from "../wiki/review.ts";
import { openWiki } from "../wiki/wiki.ts";
import type { Closers } from "./closers.ts";
import type { Core } from "./core.ts";

/** The wiki, the authors of its pages, and its reviews. */
export function openMemory({ core, paths, closers }: { core: Core; paths: Paths; closers: Closers }) {
  const { store, hub, guard, log } = core;
  const state = createState(store);
  const known = createKnownPages({
    ...{ store, state },
    onOutside: (name) => hub.emit({ type: "review.changed", data: { path: `${name}.md` } }),
  });
  const wiki = openWiki({ root: paths.wiki, emit: hub.emit, log, isSecret: (ino) => guard.isOwn(ino), known });
  closers.add(wiki.close);
  const contradictions = createContradictions({ wiki, state, log });
  const pageWriters = createPageWriters(store, known.reviewed);
  const provenance = createProvenance({
    ...{ wiki, writers: pageWriters, records: createWorkRecords(store) },
    changedOutside: (path) => known.outsideOf(path)?.at,
  });
  const pageReviews = createPageReviews({
    ...{ store, wiki, writers: pageWriters, known, contradictions, provenance, state, emit: hub.emit },
  });
  return { wiki, contradictions, provenance, pageWriters, pageReviews };
}
export type Memory = ReturnType<typeof openMemory>;
