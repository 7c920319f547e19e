import { createAccess } from "../channels/telegram/access.ts";
import type { LiveConfig } from "../home/live-config.ts";
import type { Paths } from "../home/paths.ts";
import { createDailyDigest, createDigest } from "../news/digest.ts";
import { createNews, type EndedWork } from "../news/news.ts";
import { describeRestart } from "../news/restart.ts";
import { createRunningCommands } from "../news/running-commands.ts";
import type { Source } from "../protocol/messages.ts";
import type { NewsLevel } from "../protocol/news.ts";
import type { Owed, Receipt } from "../protocol/outbox.ts";
import type { Schedules } from "../schedules/schedules.ts";
import type { Squads } from "../squads/squads.ts";
import { createConversationRows } from "../store/conversations.ts";
import { createDigestRows } from "../store/digest.ts";
import { createInterruptedRows } from "../store/interrupted.ts";
import type { Messages } from "../store/messages.ts";
import type { OutboxRows } from "../store/outbox.ts";
import type { State } from "../store/state.ts";
import { createTelegramPeople } from "../store/telegram-people.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import type { Core } from "./core.ts";

export interface NewsPartsDeps {
  core: Core;
  paths: Pick<Paths, "database">;
  settings: LiveConfig;
  state: State;
  messages: Messages;
  squads: Squads;
  swarm: Swarm;
  schedules: Pick<Schedules, "questionsDue">;
  rows: OutboxRows;
  owe: (owed: Owed) => void;
}

/** How many of the latest runs are checked. */
const MOST_RUNS = 100;

/** What IO tells people unasked: its level, whether it is held back, and the digest. */
export function buildNews(deps: NewsPartsDeps) {
  const { core, paths, settings, state, messages, squads, swarm, schedules, rows, owe } = deps;
  const { store, hub, approvals, log } = core;
  const conversations = createConversationRows(store);
  const access = createAccess({
    ...{ people: createTelegramPeople(store), state },
    authorizedUserId: () => settings.current().authorizedUserId,
  });
  const config = () => settings.current().news;
  const news = createNews({
    config,
    findMessage: messages.find,
    findApproval: (id) => found(() => approvals.find(id)),
    findWork: (id) => workOf(id, squads, swarm),
    filterOf: (conversation) => conversations.find(conversation)?.news,
    squadFilterOf: (slug) => found(() => squads.find(slug))?.safety.news,
  });
  const personalSource = (): Source => {
    const id = settings.current().telegramEnabled ? access.user()?.id : undefined;
    return id === undefined ? { channel: "api" } : { channel: "telegram", chatId: id };
  };
  const left = createInterruptedRows(store);
  const digest = createDigest({
    ...{ news, outbox: rows, rows: createDigestRows({ db: store.db, file: paths.database }) },
    prices: () => settings.current().prices,
  });
  const daily = createDailyDigest({ store, state, digest, config, outbox: rows, owe, personalSource, log });
  const commands = createRunningCommands(state);
  const stopListening = hub.subscribe((event) => {
    commands.heard(event);
    if (event.type === "config.changed" && event.data.keys.includes("news")) void daily.look();
  });
  return {
    ...news,
    digest,
    personalSource,
    /** Whether news of a level about a message, a task or a run goes out now. */
    goesOutFor(level: NewsLevel, id: string): boolean {
      const message = id.startsWith("m_") ? messages.find(id) : undefined;
      const task = id.startsWith("t_") ? found(() => squads.task(id)) : undefined;
      const run = id.startsWith("r_") ? swarm.show(id) : undefined;
      const conversation = message?.conversation ?? task?.origin?.conversation ?? run?.conversation ?? "main";
      return news.goesOut(level, { conversation, squad: task?.squad ?? run?.squad ?? null });
    },
    /** Tells clients what went out, in the transaction that records it. */
    settled(owed: Owed, receipt: Receipt): void {
      const notice = receipt === "held" ? undefined : news.noticeOf(owed);
      if (notice) hub.emit({ type: "news.told", data: notice });
    },
    /** Tells the person something unasked, once per key. */
    tell({ text, key, isUrgent }: { text: string; key: string; isUrgent: boolean }): void {
      const level = isUrgent ? ("urgent" as const) : ("normal" as const);
      owe({ kind: "news", about: key, conversation: "main", source: personalSource(), text, level, key: `told:${key}` });
    },
    start: daily.start,
    /** Reports, once, what an earlier life left unfinished; call this before any of it resumes. */
    tellRestart(): void {
      const [open, tasks] = [left.messages(), left.tasks()];
      const runs = swarm.orphans(MOST_RUNS).map(({ id, issue }) => ({ id, text: issue }));
      const uncertainEffects = left.uncertainEffects([...open, ...tasks].map(({ id }) => id));
      const ended = commands.takeEnded();
      const waiting = { approvals: approvals.waitingCount(), missed: schedules.questionsDue() };
      const told = describeRestart({ messages: open, tasks, runs, commands: ended, uncertainEffects, ...waiting });
      if (!told) return;
      // A message alone is answered where it was sent: only clients are told, so that nobody's phone rings twice.
      const isMore = tasks.length + runs.length + ended.length + uncertainEffects > 0;
      const source = isMore ? personalSource() : { channel: "api" as const };
      const about = `restart:${new Date().toISOString()}`;
      owe({ kind: "news", about, conversation: "main", source, ...told, key: about });
    },
    async close() {
      stopListening();
      await daily.close();
    },
  };
}
export type BuiltNews = ReturnType<typeof buildNews>;

/** A task or a run that has ended. */
function workOf(id: string, squads: Squads, swarm: Swarm): EndedWork | undefined {
  const task = id.startsWith("t_") ? found(() => squads.task(id)) : undefined;
  if (task) return { failed: task.status === "failed", squad: task.squad };
  const run = id.startsWith("r_") ? swarm.show(id) : undefined;
  if (!run) return undefined;
  const isGood = run.outcome === "approved" || run.outcome === "unchanged" || run.status === "cancelled";
  return { failed: !isGood, squad: run.squad };
}

/** Undefined for what no longer exists. */
function found<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch {
    // It was removed since, with its owner or by age.
    return undefined;
  }
}
