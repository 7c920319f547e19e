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

const MAX_CHANGES = 1_000;
const MAX_EDITS = 10_000;
const MAX_SAID = 200;
export const EPOCH = "1970-01-01T00:00:00.000Z";
export const reviewedKey = (name: string) => `wiki-reviewed:${name}`;

/** What happened to one page since a person last looked. At least one of the two is set. */
export interface Unreviewed {
  /** The newest first. */
  agents: PageChange[];
  outside: OutsideChange | undefined;
}

/** Finds the changes that no person has reviewed yet, and the text before them. */
export function createUnreviewed({ wiki, writers, known: pages, contradictions, provenance, state }: UnreviewedDeps) {
  /** When a person last changed each page. */
  function editedAt(): Map<string, string> {
    const edits = new Map<string, string>();
    for (const { path, at } of writers.changes({ since: EPOCH, limit: MAX_EDITS, by: "person" }))
      if (!edits.has(nameOf(path))) edits.set(nameOf(path), at);
    return edits;
  }

  /** The unreviewed changes by page, most recently changed first. */
  function open(path?: string): Map<string, Unreviewed> {
    const found = new Map<string, Unreviewed>();
    const edits = editedAt();
    for (const change of writers.changes({ since: EPOCH, limit: MAX_CHANGES, by: "agent", path })) {
      const name = nameOf(change.path);
      if (change.at <= (state.get(reviewedKey(name)) ?? "") || change.at <= (edits.get(name) ?? "")) continue;
      const agents = [...(found.get(name)?.agents ?? []), change];
      found.set(name, { agents, outside: undefined });
    }
    const one = path === undefined ? undefined : pages.outsideOf(path);
    for (const outside of path === undefined ? pages.outside(MAX_CHANGES) : one ? [one] : [])
      found.set(outside.name, { agents: found.get(outside.name)?.agents ?? [], outside });
    return new Map([...found].sort(([, a], [, b]) => (lastAt(a) < lastAt(b) ? 1 : -1)));
  }

  function versionsOf(path: string): number {
    try {
      return wiki.history(path).length;
    } catch {
      // The page is deleted and no version was kept.
      return 0;
    }
  }

  function versionBefore(path: string, at: string): string | null {
    try {
      return wiki.history(path).find(({ savedAt }) => savedAt < at)?.version ?? null;
    } catch {
      // The page is deleted and no version was kept.
      return null;
    }
  }

  /** Whether there was a previous version that is no longer kept. */
  function isPreviousTextLost(name: string, before: string | null, { outside }: Unreviewed): boolean {
    if (before !== null) return false;
    return versionsOf(`${name}.md`) >= VERSIONS_KEPT || (outside !== undefined && outside.before !== "");
  }

  /** The version before the first of the changes. */
  function versionBeforeChanges(name: string, { agents, outside }: Unreviewed): string | null {
    const path = `${name}.md`;
    const first = agents.at(-1);
    if (!outside || (first && first.at < outside.beganAt)) return versionBefore(path, first?.at ?? "");
    if (outside.before === "") return null;
    // Compare the text: somebody who edits a file by hand can set any time on it.
    try {
      return (
        wiki.history(path).find(({ version }) => hashOf(wiki.readVersion(path, version)) === outside.before)?.version ?? null
      );
    } catch {
      // The page is deleted and no version was kept.
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
      before: versionBeforeChanges(name, changed),
      contradictions: contradictions.noted(name),
    };
  }

  return { open, itemOf, isPreviousTextLost };
}

const lastAt = ({ agents, outside }: Unreviewed): string => [agents[0]?.at ?? "", outside?.at ?? ""].sort()[1]!;

/** Short enough for a button. */
const idOf = (name: string, at: string) => `w_${createHash("sha256").update(`${name}\n${at}`).digest("hex").slice(0, 16)}`;
