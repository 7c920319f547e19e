import type { NewsConfig, NewsFilter } from "../home/news-config.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Approval } from "../protocol/approvals.ts";
import type { Message } from "../protocol/messages.ts";
import { shownFailure } from "../protocol/messages.ts";
import type { HeldNews, NewsLevel, Notice } from "../protocol/news.ts";
import type { Owed } from "../protocol/outbox.ts";
import { isQuiet } from "./quiet-hours.ts";

/** How a task or a run ended, as far as its news is concerned. */
export interface EndedWork {
  failed: boolean;
  squad: string | null;
}

export interface NewsDeps {
  config: () => NewsConfig;
  findMessage: (id: string) => Message | undefined;
  findApproval: (id: string) => Approval | undefined;
  /** A task or a run that a message of the background tells of. */
  findWork: (id: string) => EndedWork | undefined;
  /** What a person set for a conversation and for a squad; undefined where nothing is set. */
  filterOf: (conversation: string) => NewsFilter | undefined;
  squadFilterOf: (squad: string) => NewsFilter | undefined;
  now?: () => Date;
}

/** Where news belongs. */
export interface NewsScope {
  conversation: string;
  squad: string | null;
}

const MAX_TEXT = 300;
const STRICTEST: readonly NewsFilter[] = ["none", "urgent", "all"];

/** Decides how loud each thing is that is owed to somebody, and whether it goes out now or waits for the digest. */
export function createNews(deps: NewsDeps) {
  const { config, findMessage, findApproval, findWork, filterOf, squadFilterOf, now = () => new Date() } = deps;

  function ofReply(message: Message): { level: NewsLevel; squad: string | null } | undefined {
    const { source, status } = message;
    if (source.channel === "schedule") return { level: status === "failed" ? "urgent" : "normal", squad: null };
    if (source.channel !== "background") return undefined;
    const work = findWork(source.about);
    return { level: status === "failed" || work?.failed ? "urgent" : "normal", squad: work?.squad ?? null };
  }

  /** What is told, and in whose name; undefined for the answer to somebody who waits for it, which is no news. */
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
    /** Whether something that is owed has to wait for the next digest. */
    isHeldBack(owed: Owed): boolean {
      // A digest is itself what the rest waits for.
      if (owed.about.startsWith("digest:")) return false;
      const found = read(owed);
      return found !== undefined && !goesOut(found.notice.level, { conversation: owed.conversation, squad: found.squad });
    },
    /** What clients are told of something that went out; undefined for what is no news. */
    noticeOf: (owed: Owed): Notice | undefined => read(owed)?.notice,
    /** What a digest says of something that was held back; undefined for what is over meanwhile. */
    heldOf({ at, ...owed }: Owed & { at: string }): HeldNews | undefined {
      const found = read(owed);
      if (!found) return undefined;
      const { level: _, ...notice } = found.notice;
      return { ...notice, at };
    },
  };
}
export type NewsDesk = ReturnType<typeof createNews>;
