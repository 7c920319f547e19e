import type { AgentContext, ContentBlock, PromptResponse, SessionUpdate } from "@agentclientprotocol/sdk";
import type { Approval } from "../../protocol/approvals.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import type { Event } from "../../protocol/events.ts";
import type { Message } from "../../protocol/messages.ts";
import type { TodoItem } from "../../protocol/todo.ts";
import type { ContextUse } from "../../protocol/turns.ts";
import { persistently, segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import type { Commands } from "./commands.ts";
import { readPrompt, textBlock } from "./content.ts";
import { invalid } from "./errors.ts";
import { createFeed } from "./feed.ts";
import { createPrompts } from "./prompts.ts";
import { createQuestions, type Questions } from "./questions.ts";
import { isOfPerson, type Replayed, replayMessages } from "./replay.ts";
import { createEditorServers } from "./servers.ts";
import { createSettings, type SessionSettings } from "./settings.ts";
import { createTerminals } from "./terminals.ts";
import { createEditorTexts, type EditorOffers } from "./texts.ts";
import { createTurnReporter, planOf, type TurnReporter } from "./turn-reporter.ts";

export interface SessionDeps {
  access: AcpAccess;
  client: Pick<AgentContext, "request" | "notify">;
  commands: Commands;
  /** The conversation's name. */
  id: string;
  folder: string;
  offers: () => EditorOffers;
  /** The conversation, if it already exists. */
  known?: ConversationInfo;
}

/** One conversation that an editor has open. Nothing is stored before the first prompt. */
export function createSession({ access, client, commands, id, folder, offers, known }: SessionDeps) {
  /** Texts of other clients, until their turns begin. */
  const asked = new Map<string, string>();
  /** The last event of each message that a replay has already shown. */
  const toldUpTo = new Map<string, number>();
  let title = known?.title ?? null;
  let keeping: Promise<unknown> | undefined = known ? Promise.resolve() : undefined;

  const path = `/api/conversations/${segment(id)}`;
  const tell = (update: SessionUpdate) => client.notify("session/update", { sessionId: id, update });
  const say = (text: string) => tell({ sessionUpdate: "agent_message_chunk", content: textBlock(text) });
  const reporter = createTurnReporter({ folder: () => folder, tell, resultOf: (...of) => resultOf(access, ...of) });
  const servers = createEditorServers({ access, path: `${path}/servers`, folder, session: id, client, say });
  const texts = createEditorTexts({ access, client, session: id, path: `${path}/editor`, folder, offers });
  const terminals = createTerminals({ access, client, session: id, path: `${path}/editor`, show: reporter.showTerminal });
  const feed = createFeed({ access, conversation: id, onEvent: handleEvent, onLost: (back) => prompts.lost(back) });
  const prompts = createPrompts({ access, conversation: id, feed, keep });
  const settings = createSettings({ access, conversation: id, isKept: () => keeping !== undefined });
  if (known) settings.heard(known);
  const questions = createQuestions({
    ...{ access, client, conversation: id, folder },
    callOf: ({ owner, tool, command, path: file }) => reporter.openCall(owner.id, tool, command ?? file ?? ""),
    say,
  });

  async function handleEvent(event: Event): Promise<void> {
    if ("id" in event.data && event.id <= (toldUpTo.get(String(event.data.id)) ?? 0)) return;
    switch (event.type) {
      case "message.queued":
        if (isOfPerson(event.data.source) && !prompts.isOwn(event.data.id)) asked.set(event.data.id, event.data.text);
        return;
      case "message.started":
        await showOtherPrompt(event.data.id);
        return reporter.handle(event);
      case "message.finished":
        return finish(event.data);
      case "approval.asked":
        return questions.ask(event.data);
      case "approval.decided":
        return questions.decided(event.data);
      case "editor.asked":
        // The turn, and with it all later events, waits for this answer.
        void texts.answer(event.data).catch((error: unknown) => access.note(String(error)));
        if (event.data.terminal && offers().terminals) void terminals.run(event.data.ask, event.data.terminal);
        return;
      case "conversation.changed":
        return event.data.name === id ? reportChanges(event.data) : undefined;
      default:
        return reporter.handle(event);
    }
  }

  /** Shows what another client said in this conversation. */
  async function showOtherPrompt(message: string): Promise<void> {
    const text = asked.get(message);
    asked.delete(message);
    if (text !== undefined) await tell({ sessionUpdate: "user_message_chunk", content: textBlock(text), messageId: message });
  }

  async function reportChanges(info: ConversationInfo): Promise<void> {
    if (info.title !== title) await tell({ sessionUpdate: "session_info_update", title: info.title });
    title = info.title;
    if (!settings.heard(info)) return;
    await tell({ sessionUpdate: "current_mode_update", currentModeId: settings.modes().currentModeId });
    await tell({ sessionUpdate: "config_option_update", configOptions: settings.options() });
  }

  async function finish(message: Message): Promise<void> {
    texts.withdraw();
    await reporter.finish(message);
    await reportContextUse(access, path, tell);
    prompts.finished(message);
  }

  /** Creates the conversation, once. */
  async function keep(): Promise<void> {
    keeping ??= persistently(() => access.request("PATCH", path, { folder, ...settings.toKeep() }));
    await keeping.catch((error: unknown) => {
      keeping = undefined;
      throw error;
    });
    await Promise.all([servers.renew(), texts.open()]);
  }

  return {
    id,
    settings,
    ...changesOf(settings, tell),
    /** Follows the conversation from now on; with `replays`, shows the earlier history first. */
    open: ({ replays }: { replays: boolean }): Promise<void> =>
      feed.hold(async () => {
        await feed.open();
        const replayed = await replayMessages({ access, conversation: id, folder, tell: replays ? tell : undefined });
        for (const message of replayed.finished) toldUpTo.set(message, Number.POSITIVE_INFINITY);
        await catchUp({ access, asked, toldUpTo, reporter, questions, path, tell }, replayed, replays);
      }),
    tellCommands: async (): Promise<void> =>
      tell({ sessionUpdate: "available_commands_update", availableCommands: await commands.list() }),
    async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
      const { text, files } = readPrompt(blocks);
      if (text === "") throw invalid("The prompt is empty: say what you want.");
      const here = { conversation: id, folder, say, prepare: () => keep().then(feed.open) };
      const words = async (stopped: AbortSignal) => {
        await servers.settle(stopped);
        return commands.wordsFor(text, here);
      };
      return prompts.ask(words, files, signal);
    },
    cancel: prompts.cancel,
    useServers: servers.use,
    async close(): Promise<void> {
      await Promise.all([prompts.close(), servers.close(), texts.close()]);
      feed.close();
    },
  };
}
export type Session = ReturnType<typeof createSession>;

type Tell = (update: SessionUpdate) => Promise<void>;

/** Changes by the editor, which may show the mode in both of its places, whichever of them it used. */
const changesOf = (settings: SessionSettings, tell: Tell) => ({
  async setMode(mode: string): Promise<void> {
    await settings.setMode(mode);
    await tell({ sessionUpdate: "config_option_update", configOptions: settings.options() });
  },
  async setOption(option: string, value: unknown): Promise<void> {
    await settings.setOption(option, value);
    if (option === "mode") await tell({ sessionUpdate: "current_mode_update", currentModeId: settings.modes().currentModeId });
  },
});

interface CatchUpParts extends Pick<SessionDeps, "access"> {
  asked: Map<string, string>;
  toldUpTo: Map<string, number>;
  reporter: TurnReporter;
  questions: Questions;
  path: string;
  tell: Tell;
}

/** Catches up with the running and queued messages of the conversation. */
async function catchUp(parts: CatchUpParts, { unfinished }: Replayed, shows: boolean): Promise<void> {
  const { access, asked, toldUpTo, reporter, questions, path, tell } = parts;
  for (const { message, progress } of unfinished) {
    if (message.status === "queued" || !progress) {
      if (isOfPerson(message.source)) asked.set(message.id, message.text);
      continue;
    }
    toldUpTo.set(message.id, progress.upTo);
    if (shows) await reporter.replay(progress);
    else reporter.goOn(progress);
  }
  await reportTodo(access, path, tell);
  const waiting = await access.request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting&limit=200");
  for (const approval of waiting.items.reverse()) await questions.ask(approval);
  await reportContextUse(access, path, tell);
}

/** The result of a call as the model got it, from the journal. */
async function resultOf(access: AcpAccess, message: string, callId: string): Promise<string | undefined> {
  const journal = `/api/messages/${segment(message)}/calls?call=${encodeURIComponent(callId)}`;
  const calls = await access.request<{ items: { result: string | null }[] }>("GET", journal).catch(() => undefined);
  return calls?.items.at(-1)?.result ?? undefined;
}

/** Reports how full the model's window is. */
async function reportContextUse(access: AcpAccess, path: string, tell: Tell): Promise<void> {
  const use = await access.request<{ context: ContextUse | null }>("GET", `${path}/context`).catch(() => undefined);
  if (use?.context) await tell({ sessionUpdate: "usage_update", used: use.context.total, size: use.context.window });
}

/** Reports the model's to-do list, if there is one. */
async function reportTodo(access: AcpAccess, path: string, tell: Tell): Promise<void> {
  const { items } = await access.request<{ items: TodoItem[] }>("GET", `${path}/todo`);
  if (items.length > 0) await tell(planOf(items));
}
