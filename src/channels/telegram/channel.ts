import type { Pulls } from "../../forge/pulls.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { approvalKey, reminderKey } from "../../orchestrator/approval-news.ts";
import type { Changes } from "../../orchestrator/changes.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import { replyKey } from "../../orchestrator/outbox.ts";
import type { Steering } from "../../orchestrator/steering.ts";
import type { Status, Stopped } from "../../protocol/api.ts";
import type { Event } from "../../protocol/events.ts";
import { type Attachment, type Message, type Source, shownFailure } from "../../protocol/messages.ts";
import type { NewsLevel } from "../../protocol/news.ts";
import type { Receipt } from "../../protocol/outbox.ts";
import type { Task } from "../../protocol/squads.ts";
import type { Squads } from "../../squads/squads.ts";
import type { Hub } from "../../store/hub.ts";
import type { Messages } from "../../store/messages.ts";
import type { Store } from "../../store/open.ts";
import type { State } from "../../store/state.ts";
import { createTelegramChats } from "../../store/telegram-chats.ts";
import type { TelegramPeople } from "../../store/telegram-people.ts";
import { createTelegramSends } from "../../store/telegram-sends.ts";
import { createTelegramUpdates } from "../../store/telegram-updates.ts";
import type { Swarm } from "../../swarm/run/swarm.ts";
import type { Approvals } from "../../tools/approvals/approvals.ts";
import type { PageReviews } from "../../wiki/review.ts";
import type { Wiki } from "../../wiki/wiki.ts";
import type { Announcement, Question, Reply } from "../channel.ts";
import type { Access } from "./access.ts";
import { calling, createBot } from "./bot.ts";
import { createBotInfo } from "./bot-info.ts";
import { replyButtons } from "./buttons.ts";
import { type Chat, isChat } from "./chat.ts";
import { createCommands, OFFERED } from "./commands.ts";
import { createComposer } from "./compose.ts";
import { createDownloads } from "./downloads.ts";
import { createShaper, plainPieces } from "./format/answer.ts";
import type { Health } from "./health.ts";
import { createIntake } from "./intake.ts";
import { createInterjections } from "./interjections.ts";
import { createLive } from "./live.ts";
import { createLiveStatus } from "./live-status.ts";
import type { Content } from "./part.ts";
import { createPolling } from "./poll.ts";
import { createPresses } from "./presses.ts";
import { createProgress } from "./progress.ts";
import { questionContent } from "./questions.ts";
import { createReviewList } from "./reviews.ts";
import { createStrangers } from "./strangers.ts";
import { createTeller, type Teller } from "./teller.ts";
import { createTopics } from "./topics.ts";

export interface TelegramDeps {
  token: string;
  apiRoot: string;
  store: Store;
  state: State;
  people: TelegramPeople;
  access: Access;
  health: Health;
  hub: Pick<Hub, "subscribe">;
  inbox: Pick<Inbox, "submit" | "rewrite" | "cancel">;
  steering: Pick<Steering, "say">;
  messages: Messages;
  approvals: Approvals;
  squads: Squads;
  changes: Changes;
  pageReviews: PageReviews;
  wiki: Pick<Wiki, "peek">;
  swarm: Pick<Swarm, "list" | "running" | "show" | "summary">;
  pulls: Pick<Pulls, "request">;
  status: () => Status;
  stopAll: () => Stopped;
  /** Who gets the answer to a message. */
  addressOf: (messageId: string) => Source;
  /** Who asked for a message, a task or a run. */
  askerOf: (ownerId: string) => Source | undefined;
  /** Whether news of a task or run is sent now; progress is silent, a warning is not. */
  goesOut: (level: NewsLevel, ownerId: string) => boolean;
  /** The folder for files that people send. */
  filesFolder: string;
  /** Makes a file in that folder an attachment. */
  adopt: (path: string, bytes: Uint8Array) => Attachment;
  transcribe: ((file: string) => Promise<string>) | undefined;
  log: Log;
}

/** The running bot. */
export interface OpenTelegram {
  deliver(what: Reply | Question | Announcement): Promise<Receipt>;
  bot(): string | null;
  hasTopics(): boolean;
  /** Tells a user that they are now served. */
  greet(userId: number): void;
  close(): Promise<void>;
}

/** How long a stop waits for Telegram to confirm messages being sent. */
const LAST_WORDS_MS = 3_000;

/** Opens the channel without waiting for Telegram, which may be unreachable. */
export function openTelegram(deps: TelegramDeps): OpenTelegram {
  const { token, apiRoot, store, state, people, access, health, hub, inbox, messages, approvals, squads, swarm, goesOut, log } =
    deps;
  const ending = new AbortController();
  const { signal } = ending;
  const api = createBot({ token, apiRoot, signal });
  const { known, look, lookUntilAnswered } = createBotInfo({ api, health, signal });
  const sends = createTelegramSends(store);
  const updates = createTelegramUpdates(store);
  const shaped = createShaper();
  // Redacts the token, however it came into an answer.
  const shape = (markdown: string) => shaped(markdown.replaceAll(token, "[secret]"));
  const onTurnedAway = (chatId: number, why: string) => {
    if (access.servesChat(chatId)) health.turnedAway(why);
  };
  const teller = createTeller({ api, sends, onTurnedAway, signal, log });
  const { servesChat } = access;
  const live = createLive({ teller, shape, addressOf: deps.addressOf, servesChat, log });
  const progress = createProgress({ teller, servesChat, log, askerOf: deps.askerOf, goesOut: (id) => goesOut("silent", id) });
  const topics = createTopics({ api, chats: createTelegramChats(store), messages, hasTopics: () => known.topics, look });
  const reviewList = createReviewList({ pageReviews: deps.pageReviews, wiki: deps.wiki, teller, state });
  const presses = createPresses({ api, approvals, squads, teller, topics, reviewList, pulls: deps.pulls });
  const liveStatus = createLiveStatus({
    ...{ api, teller, sends, state, log, servesChat },
    ...{ status: deps.status, open: messages.open, conversationOf: topics.conversationOf },
    runningTasks: () => squads.tasks({ status: "running", limit: 10 }),
    runningRuns: () => swarm.running().map((id) => swarm.summary(id)),
  });
  const commands = createCommands({
    ...{ status: deps.status, stopAll: deps.stopAll, inbox, messages, approvals, squads, topics, teller, liveStatus },
    ...{ swarm, changes: deps.changes, reviewList },
    userId: () => access.user()?.id,
  });
  const downloads = createDownloads({ api, token, apiRoot, folder: deps.filesFolder, signal });
  const intake = createIntake({
    ...{ updates, access, commands, presses, topics, teller, inbox, messages, log },
    botId: () => botIdOf(token),
    onHeard: health.heard,
    strangers: createStrangers({ api, access, people, teller }),
    interjections: createInterjections({ api, messages, sends, updates, steering: deps.steering, log }),
    compose: createComposer({ downloads, adopt: deps.adopt, transcribe: deps.transcribe }),
  });
  const polling = createPolling({ api, health, keep: intake.keep, onKept: intake.kick, log });

  const hear = (event: Event) => {
    live.hear(event);
    progress.hear(event);
    if (event.type === "approval.decided") quietly(presses.renew(event.data));
    if (event.type === "budget.reached") {
      const { owner, kind } = event.data;
      const to = deps.askerOf(owner);
      const text = `Four fifths of the budget of this ${kind} are used. io budget show has the figures.`;
      if (to && isChat(to) && servesChat(to.chatId) && goesOut("normal", owner))
        quietly(teller.show(`budget:${event.id}`, to, { pieces: plainPieces(text), once: true }));
    }
  };
  const quietly = (work: Promise<unknown>) =>
    void work.catch((error: unknown) => log.debug("something was not shown in Telegram", { error: messageOf(error) }));

  health.set("starting");
  sends.forgetOld();
  intake.open();
  intake.kick();
  liveStatus.start();
  const unsubscribe = hub.subscribe(hear);
  const begin = async () => {
    await lookUntilAnswered();
    polling.start();
    await calling("setMyCommands", () => api.setMyCommands(OFFERED));
  };
  begin().catch((error: unknown) => {
    if (!signal.aborted) log.warn("Telegram was not told everything at the start", { error: messageOf(error) });
  });

  return {
    async deliver(what) {
      if (!isChat(what.to) || !servesChat(what.to.chatId)) return "undeliverable";
      if (!("message" in what)) return showUnasked(teller, what, what.to);
      const { message, to } = what;
      // Sends nothing that could arrive twice while Telegram is known to be unreachable.
      if (!health.is("connected")) await look();
      live.end(message.id);
      const { pieces, files } = answerOf(message, shape);
      const buttons = replyButtons(message, { findTask: (id) => taskIn(squads, id), findRun: swarm.show });
      const content = { pieces, files, buttons, alarm: message.status === "failed" };
      return showReply({ teller, health }, message, to, content);
    },
    bot: () => known.name,
    hasTopics: () => known.topics,
    greet: (userId) =>
      quietly(
        teller.show(
          `paired:${userId}:${Date.now()}`,
          { channel: "telegram", chatId: userId },
          {
            pieces: plainPieces("You are paired with IO. Say anything; /help lists what else there is."),
          },
        ),
      ),
    async close() {
      unsubscribe();
      live.close();
      progress.close();
      liveStatus.stop();
      const late = setTimeout(() => ending.abort(), LAST_WORDS_MS);
      await polling.stop();
      await Promise.all([intake.close(), teller.idle()]);
      clearTimeout(late);
      ending.abort();
    },
  };
}

/** Undefined if the task was deleted with its squad. */
function taskIn(squads: Squads, id: string): Task | undefined {
  try {
    return squads.task(id);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

const botIdOf = (token: string): number => Number(/^\d{1,15}/.exec(token)?.[0] ?? 0);

/** A question or an announcement. */
function showUnasked(teller: Teller, what: Question | Announcement, to: Chat): Promise<Receipt> {
  if ("news" in what) return teller.show(what.key, to, { pieces: plainPieces(what.news), silent: what.level === "silent" });
  const { approval, isReminder = false } = what;
  const key = isReminder ? reminderKey(approval.id) : approvalKey(approval.id);
  return teller.show(key, to, questionContent(approval, { isReminder }));
}

async function showReply(
  { teller, health }: { teller: Teller; health: Health },
  message: Message,
  to: Chat,
  content: Content,
): Promise<Receipt> {
  const show = () => teller.show(replyKey(message.id), to, content);
  const shown = await show();
  if (shown === "delivered" || health.isTurnedAway()) return shown;
  // An edit that was refused is sent as a new message; if that fails too, a notice says so.
  if ((await show()) === "delivered") return "delivered";
  return teller.show(`refused:${message.id}`, to, { pieces: plainPieces(notShown(message)) });
}

const notShown = ({ conversation }: Message) =>
  `Telegram refuses to show some of this answer. All of it is in the conversation: io conversation show ${conversation}`;

/** The final content of a message: the answer, and the error if there was one. */
function answerOf(message: Message, shape: ReturnType<typeof createShaper>): ReturnType<typeof shape> {
  const failure = shownFailure(message);
  const reply = message.reply ?? "";
  const { pieces, files } = reply.trim() === "" ? { pieces: [], files: [] } : shape(reply);
  const more = failure ?? (pieces.length + files.length === 0 ? "(The answer was empty.)" : undefined);
  return { pieces: [...pieces, ...(more === undefined ? [] : plainPieces(more))], files };
}
