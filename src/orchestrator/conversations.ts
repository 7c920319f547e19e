import { createHash } from "node:crypto";
import type { Engine, Session } from "../engine/port.ts";
import type { Mode } from "../home/safety-config.ts";
import { clipToTokens, estimateTokens } from "../lib/estimate-tokens.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { indented } from "../lib/quoted.ts";
import { RULES_TITLE } from "../protocol/rules.ts";
import { formatTodo, isUnfinished, type TodoItem } from "../protocol/todo.ts";
import type { EngineTool } from "../protocol/turns.ts";
import type { ConversationLog } from "../store/conversation-log.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { State } from "../store/state.ts";
import { describeMode, PERSONA, type Section, systemMessage } from "./system-message.ts";

export interface ConversationsDeps {
  engine: Engine;
  version: string;
  tools: EngineTool[];
  /** The tools of plan mode. */
  readingTools: EngineTool[];
  /** Further tools of a conversation in its mode. They may change between turns without a new session. */
  moreTools: (conversation: string, mode: Mode) => EngineTool[];
  sections: Section[];
  /** The user's rules for a conversation. */
  rulesFor: (conversation: string) => string;
  /** The mode of a conversation. */
  modeOf: (conversation: string) => Mode;
  /** The working folder of a conversation that has no folder. */
  workingDirectory: string;
  folderOf: (conversation: string) => string | null;
  /** What a conversation is told about its project and the program it is used from, for a window of this many tokens. */
  placeSection: (conversation: string, window: number) => Promise<string>;
  sessions: SessionRows;
  state: State;
  talk: ConversationLog;
  todosOf: (conversation: string) => TodoItem[];
  log: Log;
}

const HANDOVER_TOKENS = 1_500;
/**
 * The tools that remain if a model's window is too small for all, most important first: for acting, remembering and delegating.
 */
const ESSENTIAL = [
  ...["file_ops", "shell", "wiki_search", "wiki_read", "wiki_write", "conversation_search"],
  ...["shell_output", "shell_stop", "skill", "squad_delegate", "squad_status", "squad_task_status"],
];

/** Each conversation's lasting session: found by its stored id, or started anew when IO itself has changed. */
export function createConversations({
  engine,
  version,
  tools,
  readingTools,
  moreTools,
  sections,
  rulesFor,
  modeOf,
  workingDirectory,
  folderOf,
  placeSection,
  sessions,
  state,
  talk,
  todosOf,
  log,
}: ConversationsDeps) {
  let known: string | undefined;
  /** Computed at the first message: a start does not need it. */
  const fingerprint = () => {
    known ??= fingerprintOf(version, tools);
    return known;
  };

  const sessionWith = (id: string, conversation: string, model: string | undefined): Session => {
    const mode = modeOf(conversation);
    return engine.session({
      id,
      ...(model !== undefined && { model }),
      systemMessage: async (window) => {
        // Rules come first, because a small window shortens the last sections.
        const all = [
          { title: RULES_TITLE, text: () => rulesFor(conversation), isWhole: true },
          ...sections,
          { title: "Mode", text: () => describeMode(mode) },
        ];
        const parts = await Promise.all([
          systemMessage(all, window),
          placeSection(conversation, window),
          todoSection(conversation),
        ]);
        return parts.filter(Boolean).join("\n\n");
      },
      tools: [...(mode === "plan" ? readingTools : tools), ...moreTools(conversation, mode)],
      essential: ESSENTIAL,
      workingDirectory: folderOf(conversation) ?? workingDirectory,
      handover: (window) => clipHandover(linesOf(conversation), Math.min(HANDOVER_TOKENS, Math.floor(window / 8))),
      follows: () => sessions.before(id),
    });
  };
  /** Every session gets the unfinished steps, even if the messages about them are gone. */
  const todoSection = (conversation: string): string => {
    const steps = todosOf(conversation);
    return isUnfinished(steps) ? `## Your to-do list of this conversation\n${formatTodo(steps)}` : "";
  };
  const linesOf = (conversation: string) =>
    talk
      .last(conversation, 40, state.get(clearedKey(conversation)))
      .map(({ role, content }) => `${role === "user" ? "User" : "IO"}: ${indented(content).trimStart()}`);

  function begin(conversation: string): string {
    const id = newId(`io-${conversation}`);
    sessions.begin(id, ownerOf(conversation), fingerprint());
    if (conversation === "main") state.set("orchestrator_session_id", id);
    return id;
  }

  return {
    /**
     * Makes the next message start a new session, with a short record of the conversation; with `forget`, without one. The
     * messages stay on disk, where conversation_search finds them.
     */
    beginAnew(conversation: string, { forget }: { forget: boolean }): void {
      if (forget) state.set(clearedKey(conversation), new Date().toISOString());
      // A session with a predecessor would get most of its content.
      for (const id of sessions.ofOwner(ownerOf(conversation))) sessions.disown(id);
      begin(conversation);
    },
    /** The current session of a conversation, for a turn with the default model or another. */
    current(conversation: string, model?: string): Session {
      const row = sessions.current(ownerOf(conversation));
      if (row?.fingerprint === fingerprint()) return sessionWith(row.id, conversation, model);
      const id = begin(conversation);
      if (row) log.info("a session is replaced because IO has changed since it began", { conversation, old: row.id, new: id });
      return sessionWith(id, conversation, model);
    },
    /** A session by its id, for a message that was started in it before a restart. */
    byId(id: string, model?: string): Session | undefined {
      const row = sessions.find(id);
      return row && sessionWith(id, row.owner.slice(ownerOf("").length), model);
    },
  };
}
export type Conversations = ReturnType<typeof createConversations>;

/** Changes with the version, a tool's schema or the fixed part of the system message, but not with the roster or memory. */
export function fingerprintOf(version: string, tools: readonly EngineTool[]): string {
  const schemas = tools
    .map(({ name, description, parameters }) => ({ name, description, parameters }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([version, schemas, PERSONA]))
    .digest("hex");
}

/** The latest lines that fit, oldest first. */
function clipHandover(lines: string[], most: number): string {
  const kept: string[] = [];
  let left = most;
  for (const line of lines.reverse()) {
    const clipped = clipToTokens(line, Math.min(left, 400));
    const cost = estimateTokens(clipped) + 1;
    if (cost > left) break;
    kept.unshift(clipped);
    left -= cost;
  }
  return kept.join("\n");
}

/** The key for the time when a conversation was last cleared. */
const clearedKey = (conversation: string): string => `cleared:${conversation}`;

/** The owner of a conversation's sessions. */
export function ownerOf(conversation: string): string {
  return `conversation:${conversation}`;
}
