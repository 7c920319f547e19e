import type { Store } from "./open.ts";

/** A model's memory: a conversation since it was cleared, all tasks of one agent, or a run. */
export type Memory =
  | { kind: "conversation"; name: string }
  | { kind: "agent"; squad: string; agent: string }
  | { kind: "run"; id: string };

/** A call that brought, or may have brought, outside text into a memory. */
export interface ReadingCall {
  owner: string;
  tool: string;
  args: string;
  result: string | null;
}

/** A message that contains outside text or reports a task or run. */
export interface CarryingMessage {
  id: string;
  channel: string;
  about: string | null;
  text: string;
  /** The name of its attached file. */
  file: string | null;
}

/** A memory that passed text to an agent, with everything that it contained at that time. */
export interface PassedOn {
  from: Memory;
  until: string;
}

/** How many of the latest messages or tasks of a memory are examined. */
const MOST = 2_000;
const MOST_CALLS = 200;
const MOST_DECISIONS = 20;
/** Marks around outside text in a message. */
const MARKED = "*--- begin [0-9a-f][0-9a-f][0-9a-f][0-9a-f]*";
/** Parts of commands that may fetch outside text. */
const FETCHING = ["curl", "wget", "://", "clone", "scp", "rsync", "ssh", "gh ", "lynx", "w3m", "aria2c"];

/** Finds what each piece of work read, and to whom it passed that on. */
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
  // A task that a person gave directly has no conversation.
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
    /** The memory of a message, task or run step; undefined if it is gone. */
    memoryOf(owner: string): Memory | undefined {
      const inMessage = message.get(owner) as { name: string } | undefined;
      if (inMessage) return { kind: "conversation", name: inMessage.name };
      const inTask = task.get(owner) as { squad: string; agent: string } | undefined;
      if (inTask) return { kind: "agent", squad: inTask.squad, agent: inTask.agent };
      const id = owner.split("/")[0]!;
      return run.get(id) === undefined ? undefined : { kind: "run", id };
    },
    /** The calls up to a given time that brought, or may have brought, outside text; latest first. */
    calls({ kind, ...memory }: Memory, until: string): ReadingCall[] {
      return calls[kind].flatMap((each) => each.all({ ...memory, until }) as unknown as ReadingCall[]);
    },
    /** The messages up to a given time that contain outside text or report a task or run. */
    messages: (name: string, until: string) => messages.all({ name, until }) as unknown as CarryingMessage[],
    /** Whether a task of an agent contains outside text. */
    hasMarkedTask: (squad: string, agent: string, until: string): boolean => marked.get({ squad, agent, until }) !== undefined,
    /** Who passed text to an agent: conversations that gave it tasks, and colleagues whose decisions it sees. */
    passedTo(squad: string, agent: string, until: string): PassedOn[] {
      const conversations = asked.all({ squad, agent, until }) as unknown as { name: string; until: string }[];
      const colleagues = decided.all({ squad, agent, until }) as unknown as { agent: string; until: string }[];
      return [
        ...conversations.map(({ name, until: at }): PassedOn => ({ from: { kind: "conversation", name }, until: at })),
        ...colleagues.map(
          ({ agent: author, until: at }): PassedOn => ({ from: { kind: "agent", squad, agent: author }, until: at }),
        ),
      ];
    },
    /** A run's issue and conversation. */
    run: (id: string) => run.get(id) as { issue: string; conversation: string | null; at: string } | undefined,
  };
}
export type WorkRecords = ReturnType<typeof createWorkRecords>;
