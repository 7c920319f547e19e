import type { PageChange } from "../../../src/protocol/pages.ts";
import { actorName } from "../lib/actor.ts";

/** File times come from a coarser clock than the journal's. */
const SLACK_MS = 50;
const CHANNELS = {
  web: "on this page",
  terminal: "in the terminal",
  telegram: "in Telegram",
  api: "by the API",
  mcp: "by another program",
  acp: "in an editor",
};

/** The author of the text that a page's file has had since the given time; undefined for an edit that IO did not see. */
export function authorOf(changes: readonly PageChange[], savedAt: string): PageChange | undefined {
  const time = Date.parse(savedAt);
  const covers = ({ change, at, until }: PageChange) =>
    change === "written" && Date.parse(at) - SLACK_MS <= time && time <= Date.parse(until) + SLACK_MS;
  return changes.find(covers);
}

/** A change's author, the way people would say it. */
export function nameOf({ by, actor, channel }: PageChange): string {
  if (by === "person") return `you, ${CHANNELS[channel ?? "api"]}`;
  return actorName(actor);
}

/** A link to the work in which an agent made a change. */
export function workLink({ owner, conversation }: PageChange): { to: string; words: string } | undefined {
  if (owner !== null && /^t_/.test(owner)) return { to: `/tasks/${owner}`, words: `task ${owner}` };
  if (conversation !== null)
    return { to: `/chat/${encodeURIComponent(conversation)}${owner === null ? "" : `#${owner}`}`, words: conversation };
  return undefined;
}
