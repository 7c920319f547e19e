import { createHash } from "node:crypto";
import { oneLine } from "../lib/quoted.ts";
import type { PageReview } from "../protocol/page-review.ts";
import type { PageChange } from "../protocol/pages.ts";
import { hashOf, type KnownPages, type OutsideChange } from "../store/known-pages.ts";
import { nameOf, type PageWriters } from "../store/page-writers.ts";
import type { State } from "../store/state.ts";
import type { Contradictions } from "./noted-contradictions.ts";
import type { Provenance } from "./provenance.ts";
import { VERSIONS_KEPT } from "./versions.ts";
import type { Wiki } from "./wiki.ts";

export interface UnreviewedDeps {
  wiki: Pick<Wiki, "history" | "readVersion">;
  writers: PageWriters;
  known: Pick<KnownPages, "outside" | "outsideOf">;
  contradictions: Pick<Contradictions, "noted">;
  provenance: Pick<Provenance, "readOutside" | "isMarked">;
  state: State;
}

const MOST = 1_000;
const MOST_EDITS = 10_000;
const MAX_SAID = 200;
export const EVER = "1970-01-01T00:00:00.000Z";
export const reviewedKey = (name: string) => `wiki-reviewed:${name}`;

/** What happened to one page since a person last looked: at least one of the two. */
export interface Unreviewed {
  /** The newest first. */
  agents: PageChange[];
  outside: OutsideChange | undefined;
}

/** Finds the changes at which no person has looked yet, and what stood before them. */
export function createUnreviewed({ wiki, writers, known: pages, contradictions, provenance, state }: UnreviewedDeps) {
  /** When a person last changed each page. */
  function editedAt(): Map<string, string> {
    const edits = new Map<string, string>();
    for (const { path, at } of writers.changes({ since: EVER, limit: MOST_EDITS, by: "person" }))
      if (!edits.has(nameOf(path))) edits.set(nameOf(path), at);
    return edits;
  }

  /** The unreviewed changes of each page, the page that was changed last first. */
  function open(path?: string): Map<string, Unreviewed> {
    const found = new Map<string, Unreviewed>();
    const edits = editedAt();
    for (const change of writers.changes({ since: EVER, limit: MOST, by: "agent", path })) {
      const name = nameOf(change.path);
      if (change.at <= (state.get(reviewedKey(name)) ?? "") || change.at <= (edits.get(name) ?? "")) continue;
      const agents = [...(found.get(name)?.agents ?? []), change];
      found.set(name, { agents, outside: undefined });
    }
    const one = path === undefined ? undefined : pages.outsideOf(path);
    for (const outside of path === undefined ? pages.outside(MOST) : one ? [one] : [])
      found.set(outside.name, { agents: found.get(outside.name)?.agents ?? [], outside });
    return new Map([...found].sort(([, a], [, b]) => (lastAt(a) < lastAt(b) ? 1 : -1)));
  }

  function versionsOf(path: string): number {
    try {
      return wiki.history(path).length;
    } catch {
      // The page is gone, and nothing was ever kept of it.
      return 0;
    }
  }

  function versionBefore(path: string, at: string): string | null {
    try {
      return wiki.history(path).find(({ savedAt }) => savedAt < at)?.version ?? null;
    } catch {
      // The page is gone, and nothing was ever kept of it.
      return null;
    }
  }

  /** Whether the version that stood before is known to be gone, though there was one. */
  function isLost(name: string, before: string | null, { outside }: Unreviewed): boolean {
    if (before !== null) return false;
    return versionsOf(`${name}.md`) >= VERSIONS_KEPT || (outside !== undefined && outside.before !== "");
  }

  /** What stood before the first of the changes. */
  function beforeOf(name: string, { agents, outside }: Unreviewed): string | null {
    const path = `${name}.md`;
    const first = agents.at(-1);
    if (!outside || (first && first.at < outside.beganAt)) return versionBefore(path, first?.at ?? "");
    if (outside.before === "") return null;
    // By its text: whoever changes a file by hand can give it any time.
    try {
      return (
        wiki.history(path).find(({ version }) => hashOf(wiki.readVersion(path, version)) === outside.before)?.version ?? null
      );
    } catch {
      // The page is gone, and nothing was ever kept of it.
      return null;
    }
  }

  function itemOf(name: string, changed: Unreviewed): PageReview {
    const { agents, outside } = changed;
    const last = agents[0];
    const isAgents = last !== undefined && last.at >= (outside?.at ?? "");
    const { change, actor, owner, conversation, at } = isAgents
      ? last
      : { change: outside!.change, actor: "unknown", owner: null, conversation: null, at: outside!.at };
    return {
      id: idOf(name, at),
      ...{ path: `${name}.md`, change, changes: agents.length + (outside?.changes ?? 0) },
      ...{ by: isAgents ? ("agent" as const) : ("outside" as const), actor, owner, conversation, at },
      said: oneLine((owner === null ? undefined : writers.saidIn(owner)) ?? "", MAX_SAID),
      fromOutside:
        outside !== undefined ||
        provenance.isMarked(name) ||
        agents.some((each) => each.change === "deleted" && each.owner !== null && provenance.readOutside(each.owner, each.at)),
      before: beforeOf(name, changed),
      contradictions: contradictions.noted(name),
    };
  }

  return { open, itemOf, isLost };
}

const lastAt = ({ agents, outside }: Unreviewed): string => [agents[0]?.at ?? "", outside?.at ?? ""].sort()[1]!;

/** Short enough for a button. */
const idOf = (name: string, at: string) => `w_${createHash("sha256").update(`${name}\n${at}`).digest("hex").slice(0, 16)}`;
