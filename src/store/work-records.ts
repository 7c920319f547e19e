import type { Store } from "./open.ts";

/** What shares one memory: everything said in a conversation since it was cleared, every task of one agent, or a run. */
export type Memory =
  | { kind: "conversation"; name: string }
  | { kind: "agent"; squad: string; agent: string }
  | { kind: "run"; id: string };

/** A call that brought text of others into a memory, or may have. */
export interface ReadingCall {
  owner: string;
  tool: string;
  args: string;
  result: string | null;
}

/** A message that brought text of others along, or that tells of a task or a run. */
export interface CarryingMessage {
  id: string;
  channel: string;
  about: string | null;
  text: string;
  /** The name of a file that came with it. */
  file: string | null;
}

/** Where something came from that an agent was told: it knows what was known there at that time. */
export interface Told {
  from: Memory;
  until: string;
}

/** So many of the latest messages or tasks of one memory are looked at. */
const MOST = 2_000;
const MOST_CALLS = 200;
const MOST_DECISIONS = 20;
/** Marks that stand around the text of others in a message. */
const MARKED = "*--- begin [0-9a-f][0-9a-f][0-9a-f][0-9a-f]*";
/** What stands in a command that may bring text of others. */
const FETCHING = ["curl", "wget", "://", "clone", "scp", "rsync", "ssh", "gh ", "lynx", "w3m", "aria2c"];

/** What was read in which work, and who was told of it. */
export function createWorkRecords({ db }: Pick<Store, "db">) {
  const inConversation = `SELECT id FROM (SELECT id FROM messages WHERE conversation = :name AND created_at <= :until
    AND created_at > coalesce((SELECT value FROM io_state WHERE key = 'cleared:' || :name), '') ORDER BY seq DESC LIMIT ${MOST})`;
  const ofAgent = `SELECT id FROM (SELECT id FROM agent_tasks WHERE squad_slug = :squad AND agent = :agent AND created_at <= :until
    ORDER BY seq DESC LIMIT ${MOST})`;
  const ofRun = "SELECT DISTINCT owner FROM tool_calls WHERE owner = :id OR (owner > :id || '/' AND owner < :id || '0')";
  const sure = `(tool IN ('web_fetch', 'github', 'wiki_source', 'skill_search') OR substr(tool, 1, 5) = 'mcp__'
    OR (tool = 'shell' AND (${FETCHING.map((word) => `instr(args, '${word}') > 0`).join(" OR ")})))`;
  const perhaps = `tool IN ('wiki_read', 'wiki_search', 'conversation_search', 'squad_task_status', 'swarm_status')`;
  const readings = (owners: string, tools: string) =>
    db.prepare(`SELECT owner, tool, args, substr(result, 1, 30000) AS result FROM tool_calls WHERE owner IN (${owners})
      AND state NOT IN ('refused', 'begun') AND created_at <= :until AND ${tools} GROUP BY owner, tool, args_hash ORDER BY max(seq) DESC
      LIMIT ${MOST_CALLS}`);
  const calls = {
    conversation: [readings(inConversation, sure), readings(inConversation, perhaps)],
    agent: [readings(ofAgent, sure), readings(ofAgent, perhaps)],
    run: [readings(ofRun, sure)],
  };
  const messages = db.prepare(`SELECT id, json_extract(source, '$.channel') AS channel, json_extract(source, '$.about') AS about,
      text || coalesce((SELECT group_concat(char(10) || s.text, '') FROM steers s WHERE s.message_id = messages.id), '') AS text,
      (SELECT name FROM message_files JOIN files ON files.id = file_id WHERE message_id = messages.id ORDER BY position LIMIT 1) AS file
    FROM messages WHERE id IN (${inConversation}) AND (json_extract(source, '$.channel') IN ('openai', 'mcp', 'acp', 'background')
      OR text GLOB '${MARKED}' OR EXISTS (SELECT 1 FROM message_files WHERE message_id = messages.id)
      OR EXISTS (SELECT 1 FROM steers s WHERE s.message_id = messages.id AND s.text GLOB '${MARKED}')) ORDER BY seq DESC LIMIT ${MOST_CALLS}`);
  // What a person asks of an agent by hand comes from no conversation.
  const asked = db.prepare(`SELECT name, max(at) AS until FROM (
    SELECT a.conversation AS name, t.created_at AS at FROM agent_tasks t JOIN task_askers a ON a.task_id = t.id
      JOIN messages ON messages.id = a.message_id WHERE t.id IN (${ofAgent})
    UNION ALL SELECT s.conversation, s.created_at FROM occurrences o JOIN schedules s ON s.id = o.schedule
      WHERE o.task IN (${ofAgent}) AND json_extract(s.created_by, '$.by') = 'model') GROUP BY name`);
  const marked = db.prepare(`SELECT 1 FROM agent_tasks WHERE id IN (${ofAgent}) AND description GLOB '${MARKED}' LIMIT 1`);
  const decided =
    db.prepare(`SELECT author AS agent, max(created_at) AS until FROM (SELECT author, created_at FROM squad_decisions
    WHERE squad_slug = :squad AND created_at <= :until ORDER BY id DESC LIMIT ${MOST_DECISIONS}) WHERE author <> :agent GROUP BY author`);
  const message = db.prepare("SELECT conversation AS name, created_at AS at FROM messages WHERE id = ?");
  const task = db.prepare(
    "SELECT squad_slug AS squad, agent, coalesce(finished_at, created_at) AS at FROM agent_tasks WHERE id = ?",
  );
  const run = db.prepare("SELECT issue, conversation, created_at AS at FROM runs WHERE id = ?");

  return {
    /** The memory that a message, a task or a step of a run works with; undefined for one that is gone. */
    memoryOf(owner: string): Memory | undefined {
      const inMessage = message.get(owner) as { name: string } | undefined;
      if (inMessage) return { kind: "conversation", name: inMessage.name };
      const inTask = task.get(owner) as { squad: string; agent: string } | undefined;
      if (inTask) return { kind: "agent", squad: inTask.squad, agent: inTask.agent };
      const id = owner.split("/")[0]!;
      return run.get(id) === undefined ? undefined : { kind: "run", id };
    },
    /** The calls up to a moment that brought text of others, or perhaps did; the latest first. */
    calls({ kind, ...memory }: Memory, until: string): ReadingCall[] {
      return calls[kind].flatMap((each) => each.all({ ...memory, until }) as unknown as ReadingCall[]);
    },
    /** The messages up to a moment that brought text of others, or tell of a task or a run. */
    messages: (name: string, until: string) => messages.all({ name, until }) as unknown as CarryingMessage[],
    /** Whether a task of an agent holds the text of others. */
    hasMarkedTask: (squad: string, agent: string, until: string): boolean => marked.get({ squad, agent, until }) !== undefined,
    /** Who an agent was told things by: the conversations that gave it tasks, and the colleagues whose decisions it is told. */
    toldBy(squad: string, agent: string, until: string): Told[] {
      const conversations = asked.all({ squad, agent, until }) as unknown as { name: string; until: string }[];
      const colleagues = decided.all({ squad, agent, until }) as unknown as { agent: string; until: string }[];
      return [
        ...conversations.map(({ name, until: at }): Told => ({ from: { kind: "conversation", name }, until: at })),
        ...colleagues.map(({ agent: author, until: at }): Told => ({ from: { kind: "agent", squad, agent: author }, until: at })),
      ];
    },
    /** What a run was asked, and in which conversation. */
    run: (id: string) => run.get(id) as { issue: string; conversation: string | null; at: string } | undefined,
  };
}
export type WorkRecords = ReturnType<typeof createWorkRecords>;
