import { createHash } from "node:crypto";
import type { Engine, Session } from "../engine/port.ts";
import { clipToTokens, estimateTokens } from "../lib/estimate-tokens.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { indented } from "../lib/quoted.ts";
import type { EngineTool } from "../protocol/turns.ts";
import type { ConversationLog } from "../store/conversation-log.ts";
import type { SessionRows } from "../store/sessions.ts";
import type { State } from "../store/state.ts";
import { PERSONA, type Section, systemMessage } from "./system-message.ts";

export interface ConversationsDeps {
  engine: Engine;
  version: string;
  tools: EngineTool[];
  sections: Section[];
  /** Where the orchestrator stands. */
  workingDirectory: string;
  sessions: SessionRows;
  state: State;
  talk: ConversationLog;
  log: Log;
}

const HANDOVER_TOKENS = 1_500;
/** What stays of the tools when a model's window has no room for all: to remember, to look, to act, and to hand on. */
const ESSENTIAL = [
  "wiki_search",
  "wiki_read",
  "wiki_write",
  "shell",
  "file_ops",
  "skill",
  "squad_status",
  "squad_delegate",
  "squad_task_status",
];

/** Each conversation's lasting session: found by its stored id, or begun anew when IO itself has changed. */
export function createConversations({
  engine,
  version,
  tools,
  sections,
  workingDirectory,
  sessions,
  state,
  talk,
  log,
}: ConversationsDeps) {
  const fingerprint = fingerprintOf(version, tools);

  const sessionWith = (id: string, conversation: string): Session =>
    engine.session({
      id,
      systemMessage: (window) => systemMessage(sections, window),
      tools,
      essential: ESSENTIAL,
      workingDirectory,
      handover: (window) => clipHandover(linesOf(conversation), Math.min(HANDOVER_TOKENS, Math.floor(window / 8))),
    });
  const linesOf = (conversation: string) =>
    talk
      .last(conversation, 40)
      .map(({ role, content }) => `${role === "user" ? "User" : "IO"}: ${indented(content).trimStart()}`);

  return {
    /** The session of a conversation as it should be today. */
    current(conversation: string): Session {
      const row = sessions.current(ownerOf(conversation));
      if (row?.fingerprint === fingerprint) return sessionWith(row.id, conversation);
      const id = newId(`io-${conversation}`);
      if (row) log.info("a session is replaced because IO has changed since it began", { conversation, old: row.id, new: id });
      sessions.begin(id, ownerOf(conversation), fingerprint);
      if (conversation === "main") state.set("orchestrator_session_id", id);
      return sessionWith(id, conversation);
    },
    /** A session by its id, for a message that an earlier life began in it. */
    byId(id: string): Session | undefined {
      const row = sessions.find(id);
      return row && sessionWith(id, row.owner.slice(ownerOf("").length));
    },
  };
}
export type Conversations = ReturnType<typeof createConversations>;

/** Changes when the version, a tool's schema or the fixed part of the system message does, and not with roster or memory. */
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

function ownerOf(conversation: string): string {
  return `conversation:${conversation}`;
}
