import { ATTACHMENT_MIGRATION } from "./attachment-migration.ts";
import { BUDGET_MIGRATION } from "./budget-migration.ts";
import { CONVERSATION_MIGRATION } from "./conversation-migration.ts";
import { DISPATCH_MIGRATION } from "./dispatch-migration.ts";
import { KNOWN_PAGES_MIGRATION } from "./known-pages-migration.ts";
import { NEWS_MIGRATION } from "./news-migration.ts";
import { PAGE_MIGRATION } from "./page-migration.ts";
import { PROGRAMS_MIGRATION, RESPONSE_FIELDS_MIGRATION } from "./programs-migration.ts";
import { PULL_CONFLICT_MIGRATION, PULL_MIGRATION } from "./pull-migration.ts";
import { RULES_MIGRATION } from "./rules-migration.ts";
import { SAFETY_MIGRATIONS } from "./safety-migrations.ts";
import { SCHEDULE_MIGRATION } from "./schedule-migration.ts";
import { SCHEDULE_USAGE_MIGRATION } from "./schedule-usage-migration.ts";
import { TASK_PROJECTS_MIGRATION } from "./task-projects-migration.ts";
import { TELEGRAM_MIGRATION } from "./telegram-migration.ts";
import { TURN_CHANGES_MIGRATION } from "./turn-changes-migration.ts";
import { WATCH_MIGRATION } from "./watch-migration.ts";
import { WORKER_MIGRATION } from "./worker-migration.ts";

export interface Migration {
  name: string;
  sql: string;
}

/** Every migration, oldest first. Never reuse a name or edit a released migration. */
export const MIGRATIONS: readonly Migration[] = [
  {
    name: "0001-core",
    sql: `
      CREATE TABLE io_state (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

      CREATE TABLE messages (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        conversation TEXT NOT NULL,
        source TEXT NOT NULL,
        text TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('queued','running','done','failed','cancelled')),
        reply TEXT,
        partial INTEGER NOT NULL DEFAULT 0,
        error TEXT,
        route TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        idempotency_key TEXT UNIQUE,
        session_id TEXT,
        prompt_id TEXT,
        created_at TEXT NOT NULL,
        started_at TEXT,
        finished_at TEXT
      );
      CREATE INDEX messages_waiting ON messages (conversation, seq) WHERE status IN ('queued','running');
      CREATE INDEX messages_by_conversation ON messages (conversation, seq);

      CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        last_prompt_id TEXT,
        retired_at TEXT,
        created_at TEXT NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX sessions_by_owner ON sessions (owner, created_at);

      CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        type TEXT NOT NULL,
        conversation TEXT,
        data TEXT NOT NULL,
        created_at TEXT NOT NULL
      );

      CREATE TABLE tool_calls (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        call_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        life INTEGER NOT NULL,
        actor TEXT NOT NULL,
        tool TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('read','effect')),
        args TEXT NOT NULL,
        args_hash TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('begun','done','failed','refused','unknown')),
        result TEXT,
        result_hash TEXT,
        duration_ms REAL,
        replayed INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        UNIQUE (session_id, call_id)
      );
      CREATE INDEX tool_calls_by_owner ON tool_calls (owner, seq);

      CREATE TABLE usage (
        id INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        actor TEXT NOT NULL,
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        duration_ms REAL NOT NULL,
        created_at TEXT NOT NULL
      );
      CREATE INDEX usage_by_owner ON usage (owner);

      CREATE TABLE conversation_log (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('user','assistant')),
        source TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at TEXT NOT NULL
      );
      CREATE INDEX conversation_log_by_conversation ON conversation_log (conversation, id);

      CREATE TABLE squads (
        id INTEGER PRIMARY KEY,
        slug TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        project_path TEXT NOT NULL UNIQUE,
        copilot_session_id TEXT,
        universe TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'idle' CHECK (status IN ('idle','working','error')),
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
      );

      CREATE TABLE squad_agents (
        id INTEGER PRIMARY KEY,
        squad_slug TEXT NOT NULL REFERENCES squads(slug) ON DELETE CASCADE,
        character_name TEXT NOT NULL,
        role_title TEXT NOT NULL,
        charter TEXT NOT NULL,
        model_tier TEXT NOT NULL CHECK (model_tier IN ('high','medium','low')),
        status TEXT NOT NULL DEFAULT 'idle' CHECK (status IN ('idle','working','error')),
        created_at TEXT NOT NULL,
        UNIQUE (squad_slug, character_name)
      );

      CREATE TABLE squad_decisions (
        id INTEGER PRIMARY KEY,
        squad_slug TEXT NOT NULL REFERENCES squads(slug) ON DELETE CASCADE,
        decision TEXT NOT NULL,
        context TEXT,
        author TEXT,
        created_at TEXT NOT NULL
      );
      CREATE INDEX squad_decisions_by_squad ON squad_decisions (squad_slug, id);

      CREATE TABLE agent_tasks (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        squad_slug TEXT NOT NULL REFERENCES squads(slug) ON DELETE CASCADE,
        agent TEXT NOT NULL,
        description TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('queued','running','done','failed','cancelled')),
        result TEXT,
        error TEXT,
        evidence TEXT,
        origin TEXT,
        reason TEXT,
        model TEXT,
        session_id TEXT,
        prompt_id TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        delivered INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        started_at TEXT,
        finished_at TEXT
      );
      CREATE INDEX agent_tasks_open ON agent_tasks (squad_slug, agent, seq) WHERE status IN ('queued','running');
    `,
  },
  {
    name: "0003-swarm",
    sql: `
      CREATE TABLE runs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        status TEXT NOT NULL CHECK (status IN ('running','done','failed','cancelled')),
        outcome TEXT,
        reason TEXT,
        project_path TEXT NOT NULL,
        issue TEXT NOT NULL,
        inputs TEXT NOT NULL,
        branch TEXT,
        base TEXT,
        tree TEXT,
        applied INTEGER NOT NULL DEFAULT 0,
        conversation TEXT,
        squad TEXT,
        pid INTEGER,
        lives INTEGER NOT NULL DEFAULT 0,
        beat_at TEXT,
        cancel_asked INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        finished_at TEXT
      );

      CREATE TABLE run_steps (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        phase TEXT NOT NULL,
        stream INTEGER,
        agent TEXT,
        model TEXT,
        inputs_hash TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('begun','done','failed')),
        attempts INTEGER NOT NULL DEFAULT 0,
        session_id TEXT,
        prompt_id TEXT,
        result TEXT,
        verdict TEXT,
        error TEXT,
        usage TEXT,
        started_at TEXT NOT NULL,
        finished_at TEXT,
        UNIQUE (run_id, key)
      );
    `,
  },
  {
    name: "0004-squads",
    sql: `
      CREATE TABLE task_activity (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        task_id TEXT NOT NULL REFERENCES agent_tasks(id) ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('queued','joined','started','resumed','model','tool','decision','ended')),
        summary TEXT NOT NULL,
        data TEXT,
        created_at TEXT NOT NULL
      );
      CREATE INDEX task_activity_by_task ON task_activity (task_id, id);

      CREATE TABLE task_askers (
        task_id TEXT NOT NULL REFERENCES agent_tasks(id) ON DELETE CASCADE,
        conversation TEXT NOT NULL,
        message_id TEXT NOT NULL,
        origin TEXT NOT NULL,
        PRIMARY KEY (task_id, conversation, message_id)
      ) WITHOUT ROWID;
      CREATE INDEX task_askers_by_message ON task_askers (message_id);
    `,
  },
  {
    name: "0005-asked-models",
    sql: "ALTER TABLE run_steps ADD COLUMN asked TEXT;",
  },
  {
    name: "0006-growth",
    sql: `
      CREATE TABLE counts (
        what TEXT NOT NULL CHECK (what IN ('message','task')),
        status TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (what, status)
      ) WITHOUT ROWID;
      INSERT INTO counts SELECT 'message', status, COUNT(*) FROM messages GROUP BY status;
      INSERT INTO counts SELECT 'task', status, COUNT(*) FROM agent_tasks GROUP BY status;

      CREATE TABLE conversations (
        name TEXT PRIMARY KEY,
        messages INTEGER NOT NULL,
        waiting INTEGER NOT NULL,
        last_at TEXT NOT NULL
      ) WITHOUT ROWID;
      CREATE INDEX conversations_by_time ON conversations (last_at, name);
      INSERT INTO conversations
        SELECT conversation, COUNT(*), SUM(status IN ('queued','running')), MAX(created_at) FROM messages GROUP BY conversation;

      CREATE TRIGGER message_added AFTER INSERT ON messages BEGIN
        INSERT INTO counts VALUES ('message', new.status, 1) ON CONFLICT (what, status) DO UPDATE SET count = count + 1;
        INSERT INTO conversations VALUES (new.conversation, 1, new.status IN ('queued','running'), new.created_at)
          ON CONFLICT (name) DO UPDATE SET messages = messages + 1, waiting = waiting + excluded.waiting,
            last_at = MAX(last_at, excluded.last_at);
      END;
      CREATE TRIGGER message_moved AFTER UPDATE OF status ON messages WHEN old.status <> new.status BEGIN
        UPDATE counts SET count = count - 1 WHERE what = 'message' AND status = old.status;
        INSERT INTO counts VALUES ('message', new.status, 1) ON CONFLICT (what, status) DO UPDATE SET count = count + 1;
        UPDATE conversations SET waiting = waiting + (new.status IN ('queued','running')) - (old.status IN ('queued','running'))
          WHERE name = new.conversation;
      END;
      CREATE TRIGGER message_removed AFTER DELETE ON messages BEGIN
        UPDATE counts SET count = count - 1 WHERE what = 'message' AND status = old.status;
        UPDATE conversations SET messages = messages - 1, waiting = waiting - (old.status IN ('queued','running'))
          WHERE name = old.conversation;
        DELETE FROM conversations WHERE name = old.conversation AND messages = 0;
      END;

      CREATE TRIGGER task_added AFTER INSERT ON agent_tasks BEGIN
        INSERT INTO counts VALUES ('task', new.status, 1) ON CONFLICT (what, status) DO UPDATE SET count = count + 1;
      END;
      CREATE TRIGGER task_moved AFTER UPDATE OF status ON agent_tasks WHEN old.status <> new.status BEGIN
        UPDATE counts SET count = count - 1 WHERE what = 'task' AND status = old.status;
        INSERT INTO counts VALUES ('task', new.status, 1) ON CONFLICT (what, status) DO UPDATE SET count = count + 1;
      END;
      CREATE TRIGGER task_removed AFTER DELETE ON agent_tasks BEGIN
        UPDATE counts SET count = count - 1 WHERE what = 'task' AND status = old.status;
      END;

      CREATE INDEX agent_tasks_by_squad ON agent_tasks (squad_slug, seq);
      CREATE INDEX agent_tasks_by_status ON agent_tasks (status, seq);
      CREATE INDEX agent_tasks_by_end ON agent_tasks (squad_slug, finished_at);
      CREATE INDEX agent_tasks_owed ON agent_tasks (seq) WHERE delivered = 0;
      CREATE INDEX runs_unfinished ON runs (seq) WHERE status = 'running';
      CREATE INDEX run_steps_by_kind ON run_steps (run_id, kind);
      CREATE INDEX run_steps_usage ON run_steps (run_id, usage) WHERE usage IS NOT NULL;
    `,
  },
  {
    name: "0007-daily-usage",
    sql: `
      CREATE TABLE usage_daily (
        day TEXT NOT NULL,
        actor TEXT NOT NULL,
        model TEXT NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        PRIMARY KEY (day, actor, model)
      ) WITHOUT ROWID;
      INSERT INTO usage_daily
        SELECT substr(created_at, 1, 10), actor, model, COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(cache_read_tokens)
        FROM usage GROUP BY 1, 2, 3;

      CREATE TRIGGER usage_added AFTER INSERT ON usage BEGIN
        INSERT INTO usage_daily VALUES (substr(new.created_at, 1, 10), new.actor, new.model, 1, new.input_tokens,
          new.output_tokens, new.cache_read_tokens)
          ON CONFLICT (day, actor, model) DO UPDATE SET calls = calls + 1, input_tokens = input_tokens + excluded.input_tokens,
            output_tokens = output_tokens + excluded.output_tokens,
            cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens;
      END;
    `,
  },
  {
    name: "0008-outbox",
    sql: `
      CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        lane TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('reply','task','run')),
        about TEXT NOT NULL,
        conversation TEXT NOT NULL,
        source TEXT NOT NULL,
        text TEXT,
        state TEXT NOT NULL CHECK (state IN ('owed','kept','delivered','undeliverable')),
        attempts INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        settled_at TEXT
      );
      CREATE INDEX outbox_owed ON outbox (lane, seq) WHERE state = 'owed';
      CREATE INDEX outbox_waiting ON outbox (seq) WHERE state IN ('owed','kept');
      CREATE INDEX outbox_by_subject ON outbox (about, conversation);
    `,
  },
  {
    name: "0009-run-projects",
    sql: "CREATE INDEX runs_by_project ON runs (project_path);",
  },
  {
    name: "0010-squad-safety",
    sql: "ALTER TABLE squads ADD COLUMN safety TEXT NOT NULL DEFAULT '{}';",
  },
  ...SAFETY_MIGRATIONS,
  TELEGRAM_MIGRATION,
  PAGE_MIGRATION,
  DISPATCH_MIGRATION,
  WORKER_MIGRATION,
  BUDGET_MIGRATION,
  {
    name: "0022-squad-checks",
    sql: "ALTER TABLE squads ADD COLUMN checks TEXT;",
  },
  CONVERSATION_MIGRATION,
  TURN_CHANGES_MIGRATION,
  SCHEDULE_MIGRATION,
  PROGRAMS_MIGRATION,
  NEWS_MIGRATION,
  RULES_MIGRATION,
  PULL_MIGRATION,
  WATCH_MIGRATION,
  ATTACHMENT_MIGRATION,
  SCHEDULE_USAGE_MIGRATION,
  KNOWN_PAGES_MIGRATION,
  TASK_PROJECTS_MIGRATION,
  PULL_CONFLICT_MIGRATION,
  RESPONSE_FIELDS_MIGRATION,
];
