import type { NewsConfig, NewsFilter } from "../home/news-config.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Message } from "../protocol/messages.ts";
import { shownFailure } from "../protocol/messages.ts";
import type { HeldNews, NewsLevel, Notice } from "../protocol/news.ts";
import type { Owed } from "../protocol/outbox.ts";
import { isQuiet } from "./quiet-hours.ts";

/** How a task or run ended. */
export interface EndedWork {
  failed: boolean;
  squad: string | null;
}

export interface NewsDeps {
  config: () => NewsConfig;
  findMessage: (id: string) => Message | undefined;
  findApproval: (id: string) => Approval | undefined;
  /** The task or run that a background message reports on. */
  findWork: (id: string) => EndedWork | undefined;
  /** The user's filter for a conversation or squad; undefined if not set. */
  filterOf: (conversation: string) => NewsFilter | undefined;
  squadFilterOf: (squad: string) => NewsFilter | undefined;
  now?: () => Date;
}

/** The conversation and squad that news belongs to. */
export interface NewsScope {
  conversation: string;
  squad: string | null;
}

const MAX_TEXT = 300;
const STRICTEST: readonly NewsFilter[] = ["none", "urgent", "all"];

/** Assigns a level to each outbox entry, and decides whether it is sent now or held for the digest. */
export function createNews(deps: NewsDeps) {
  const { config, findMessage, findApproval, findWork, filterOf, squadFilterOf, now = () => new Date() } = deps;

  function ofReply(message: Message): { level: NewsLevel; squad: string | null } | undefined {
    const { source, status } = message;
    if (source.channel === "schedule") return { level: status === "failed" ? "urgent" : "normal", squad: null };
    if (source.channel !== "background") return undefined;
    const work = findWork(source.about);
    return { level: status === "failed" || work?.failed ? "urgent" : "normal", squad: work?.squad ?? null };
  }

  /** The notice for an outbox entry; undefined for a direct answer, which is not news. */
  function read(owed: Owed): { notice: Notice; squad: string | null } | undefined {
    const { kind, about, conversation } = owed;
    if (kind === "task" || kind === "run") return undefined;
    if (kind === "news") {
      return { notice: { level: owed.level ?? "normal", kind, about, conversation, text: owed.text ?? "" }, squad: null };
    }
    if (kind === "reply") {
      const message = findMessage(about);
      const found = message && ofReply(message);
      if (!found) return undefined;
      const text = shownFailure(message) ?? message.reply ?? "";
      return { notice: { level: found.level, kind, about, conversation, text: oneLine(text, MAX_TEXT) }, squad: found.squad };
    }
    const approval = findApproval(about);
    if (approval?.state !== "waiting") return undefined;
    const text = oneLine(`${kind === "reminder" ? "Still waits for you: " : ""}${approval.summary}`, MAX_TEXT);
    return { notice: { level: "urgent", kind, about, conversation, text }, squad: approval.squad };
  }

  function goesOut(level: NewsLevel, { conversation, squad }: NewsScope): boolean {
    const set = [filterOf(conversation), squad === null ? undefined : squadFilterOf(squad)];
    const filter = STRICTEST.find((each) => set.includes(each)) ?? "all";
    if (filter !== "all") return filter === "urgent" && level === "urgent";
    return level === "urgent" || !isQuiet(config().quietHours, now());
  }

  return {
    goesOut,
    /** Whether an outbox entry has to wait for the next digest. */
    isHeldBack(owed: Owed): boolean {
      // The digest itself is never held back.
      if (owed.about.startsWith("digest:")) return false;
      const found = read(owed);
      return found !== undefined && !goesOut(found.notice.level, { conversation: owed.conversation, squad: found.squad });
    },
    /** The notice to clients about a sent entry; undefined if it is not news. */
    noticeOf: (owed: Owed): Notice | undefined => read(owed)?.notice,
    /** A held-back entry in the digest; undefined if it no longer matters. */
    heldOf({ at, ...owed }: Owed & { at: string }): HeldNews | undefined {
      const found = read(owed);
      if (!found) return undefined;
      const { level: _, ...notice } = found.notice;
      return { ...notice, at };
    },
  };
}
export type NewsDesk = ReturnType<typeof createNews>;
