import { setTimeout as sleep } from "node:timers/promises";
import { clipToTokens } from "../lib/estimate-tokens.ts";
import { named } from "../lib/quoted.ts";
import { findConventions, formatConventions } from "../project/conventions.ts";

export interface ProjectSectionDeps {
  folderOf: (conversation: string) => string | null;
  /** A few lines about a project; never rejects. */
  factsOf: (folder: string) => Promise<string>;
  waitMs?: number;
}

/** How long a message waits for the analysis of a large project; later messages get its result. */
const WAIT_MS = 5_000;
const FACTS_TOKENS = 600;
const LATER = "Its files are still being looked at; look for yourself.";

/**
 * The part of the system message about a conversation's project: its folder, its analysis, and its own conventions, read each
 * time.
 */
export function createProjectSection({ folderOf, factsOf, waitMs = WAIT_MS }: ProjectSectionDeps) {
  return async (conversation: string, window: number): Promise<string> => {
    const folder = folderOf(conversation);
    if (folder === null) return "";
    const late = new AbortController();
    const waited = sleep(waitMs, LATER, { signal: late.signal, ref: false }).catch(() => LATER);
    const [facts, conventions] = await Promise.all([
      Promise.race([factsOf(folder), waited]).finally(() => late.abort()),
      findConventions(folder),
    ]);
    const about = [
      "## The project of this conversation",
      `${named(folder, 500)}: commands and relative paths begin there.`,
      clipToTokens(facts, Math.min(FACTS_TOKENS, Math.floor(window / 16))),
    ].join("\n");
    const told = formatConventions(conventions, window);
    return told === "" ? about : `${about}\n\n${told}`;
  };
}
