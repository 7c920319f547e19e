import type { PageChange } from "../../../src/protocol/pages.ts";
import { shortPath } from "./paths.ts";

/** A file's time comes from a coarser clock than the journal's. */
const SLACK_MS = 50;
const CHANNELS = { web: "on this page", terminal: "in the terminal", api: "by the API" };

/** Who wrote the text that a page's file has had since a moment; undefined for an edit that IO did not see. */
export function authorOf(changes: readonly PageChange[], savedAt: string): PageChange | undefined {
  const time = Date.parse(savedAt);
  const covers = ({ change, at, until }: PageChange) =>
    change === "written" && Date.parse(at) - SLACK_MS <= time && time <= Date.parse(until) + SLACK_MS;
  return changes.find(covers);
}

/** A change's author as one would say it. */
export function nameOf({ by, actor, channel }: PageChange): string {
  if (by === "person") return `you, ${CHANNELS[channel ?? "api"]}`;
  return actor === "orchestrator" ? "IO" : actor.replace(/^squad:/, "").replace(/^([^/:]+)[/:](.*)$/, "$2 of $1");
}

/** Where the work can be seen in which an agent made a change. */
export function workLink({ owner, conversation }: PageChange): { to: string; words: string } | undefined {
  if (owner !== null && /^t_/.test(owner)) return { to: `/tasks/${owner}`, words: `task ${owner}` };
  if (conversation !== null)
    return { to: `/chat/${encodeURIComponent(conversation)}${owner === null ? "" : `#${owner}`}`, words: conversation };
  return undefined;
}

/** What agents did to one page since a person last looked at it or changed it. */
export interface AgentEdits {
  path: string;
  latest: PageChange;
  /** When the first of these changes began: what the page held before is what a person last saw. */
  since: string;
  times: number;
}

/** From changes, the newest first: the pages whose last word was an agent's and that nobody has kept since. */
export function agentEdits(changes: readonly PageChange[], keptAt: (path: string) => string): AgentEdits[] {
  const pages = new Map<string, AgentEdits>();
  const seen = new Set<string>();
  for (const change of changes) {
    const path = shortPath(change.path);
    if (seen.has(path)) continue;
    if (change.by === "person" || change.at <= keptAt(path)) {
      seen.add(path);
      continue;
    }
    const known = pages.get(path);
    if (known) Object.assign(known, { since: change.at, times: known.times + 1 });
    else pages.set(path, { path, latest: change, since: change.at, times: 1 });
  }
  return [...pages.values()];
}
