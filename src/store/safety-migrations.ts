/** Tables for approvals and budgets, oldest first; part of all migrations. */
export const SAFETY_MIGRATIONS: readonly { name: string; sql: string }[] = [
  {
    name: "0011-approvals",
    sql: `
      CREATE TABLE approvals (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL CHECK (kind IN ('call','budget')),
        owner_kind TEXT NOT NULL CHECK (owner_kind IN ('message','task','run')),
        owner_id TEXT NOT NULL,
        conversation TEXT,
        squad TEXT,
        actor TEXT NOT NULL,
        tool TEXT NOT NULL,
        hash TEXT NOT NULL,
        summary TEXT NOT NULL,
        command TEXT,
        path TEXT,
        diff TEXT,
        cwd TEXT,
        tree_hash TEXT,
        reason TEXT,
        rule TEXT,
        project TEXT,
        scopes TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting','allowed','denied','expired','withdrawn')),
        scope TEXT,
        decided_by TEXT,
        note TEXT,
        used INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        decided_at TEXT
      );
      CREATE INDEX approvals_waiting ON approvals (expires_at) WHERE state = 'waiting';
      CREATE INDEX approvals_by_hash ON approvals (hash);
      CREATE INDEX approvals_by_owner ON approvals (owner_id);
      CREATE INDEX approvals_by_state ON approvals (state, seq);

      CREATE TABLE approval_rules (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL CHECK (scope IN ('task','project')),
        place TEXT NOT NULL,
        tool TEXT NOT NULL,
        match TEXT NOT NULL,
        approval TEXT NOT NULL,
        created_at TEXT NOT NULL,
        UNIQUE (scope, place, tool, match)
      );

      CREATE TABLE wider_outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        lane TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('reply','task','run','approval')),
        about TEXT NOT NULL,
        conversation TEXT NOT NULL,
        source TEXT NOT NULL,
        text TEXT,
        state TEXT NOT NULL CHECK (state IN ('owed','kept','delivered','undeliverable')),
        attempts INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        settled_at TEXT
      );
      INSERT INTO wider_outbox
        SELECT seq, key, lane, kind, about, conversation, source, text, state, attempts, created_at, settled_at FROM outbox;
      DROP TABLE outbox;
      ALTER TABLE wider_outbox RENAME TO outbox;
      CREATE INDEX outbox_owed ON outbox (lane, seq) WHERE state = 'owed';
      CREATE INDEX outbox_waiting ON outbox (seq) WHERE state IN ('owed','kept');
      CREATE INDEX outbox_by_subject ON outbox (about, conversation);
    `,
  },
  {
    name: "0012-ledger",
    sql: `
      ALTER TABLE usage ADD COLUMN conversation TEXT;
      ALTER TABLE usage ADD COLUMN squad TEXT;
      ALTER TABLE usage ADD COLUMN agent TEXT;
      ALTER TABLE usage ADD COLUMN task TEXT;
      ALTER TABLE usage ADD COLUMN run TEXT;
      ALTER TABLE usage ADD COLUMN step TEXT;
      ALTER TABLE usage ADD COLUMN source TEXT;
      ALTER TABLE usage ADD COLUMN rehearsal INTEGER NOT NULL DEFAULT 0;
      UPDATE usage SET conversation = m.conversation, agent = usage.actor,
        source = CASE WHEN json_valid(m.source) THEN m.source ->> 'channel' END
        FROM messages m WHERE m.id = usage.owner;
      UPDATE usage SET task = t.id, squad = t.squad_slug, agent = t.agent,
        conversation = CASE WHEN json_valid(t.origin) THEN t.origin ->> '$.conversation' END,
        source = CASE WHEN json_valid(t.origin) THEN t.origin ->> '$.source.channel' END
        FROM agent_tasks t WHERE t.id = usage.owner;
      UPDATE usage SET run = r.id, squad = r.squad, agent = replace(usage.actor, 'swarm:', ''), conversation = r.conversation
        FROM runs r WHERE r.id = usage.owner;
      UPDATE usage SET rehearsal = 1 WHERE model = 'rehearsal';
      DROP INDEX usage_by_owner;
      CREATE INDEX usage_by_owner ON usage (owner, model);
      CREATE INDEX usage_by_step ON usage (run, step, model) WHERE run IS NOT NULL;

      CREATE TABLE usage_sums (
        kind TEXT NOT NULL,
        day TEXT NOT NULL,
        name TEXT NOT NULL,
        squad TEXT NOT NULL,
        model TEXT NOT NULL,
        rehearsal INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        PRIMARY KEY (kind, day, name, squad, model, rehearsal)
      ) WITHOUT ROWID;
      CREATE INDEX usage_sums_by_name ON usage_sums (kind, name) WHERE name <> '';

      CREATE TEMP TABLE known AS SELECT substr(created_at, 1, 10) AS day, model, rehearsal, conversation, task, run, source,
        COUNT(*) AS calls, SUM(input_tokens) AS input, SUM(output_tokens) AS output, SUM(cache_read_tokens) AS cached
        FROM usage GROUP BY 1, 2, 3, 4, 5, 6, 7;
      ${["conversation", "task", "run", "source"]
        .map(
          (kind) => `INSERT INTO usage_sums
        SELECT '${kind}', day, ${kind}, '', model, rehearsal, SUM(calls), SUM(input), SUM(output), SUM(cached)
        FROM known WHERE ${kind} IS NOT NULL GROUP BY 2, 3, 5, 6;
      INSERT INTO usage_sums
        SELECT '${kind}', d.day, '', '', d.model, d.model = 'rehearsal', SUM(d.calls) - coalesce(k.calls, 0),
          SUM(d.input_tokens) - coalesce(k.input, 0), SUM(d.output_tokens) - coalesce(k.output, 0),
          SUM(d.cache_read_tokens) - coalesce(k.cached, 0)
        FROM usage_daily d LEFT JOIN (SELECT day, model, SUM(calls) AS calls, SUM(input) AS input, SUM(output) AS output,
          SUM(cached) AS cached FROM known WHERE ${kind} IS NOT NULL GROUP BY day, model) k ON k.day = d.day AND k.model = d.model
        GROUP BY d.day, d.model HAVING SUM(d.calls) > coalesce(k.calls, 0);`,
        )
        .join("\n      ")}
      DROP TABLE known;
      INSERT INTO usage_sums
        SELECT 'total', day, '', '', model, model = 'rehearsal', SUM(calls), SUM(input_tokens), SUM(output_tokens),
          SUM(cache_read_tokens) FROM usage_daily GROUP BY day, model;
      INSERT INTO usage_sums
        SELECT 'actor', day, actor, '', model, model = 'rehearsal', calls, input_tokens, output_tokens, cache_read_tokens
        FROM usage_daily;
      CREATE TEMP TABLE actors AS SELECT actor,
        CASE WHEN actor LIKE 'squad:%/%' THEN substr(actor, 7, instr(actor, '/') - 7) ELSE '' END AS squad,
        CASE WHEN actor LIKE 'squad:%/%' THEN substr(actor, instr(actor, '/') + 1)
          WHEN actor LIKE 'swarm:%' THEN substr(actor, 7) ELSE actor END AS agent
        FROM usage_daily GROUP BY actor;
      INSERT INTO usage_sums
        SELECT 'agent', day, agent, squad, model, model = 'rehearsal', SUM(calls), SUM(input_tokens), SUM(output_tokens),
          SUM(cache_read_tokens) FROM usage_daily JOIN actors USING (actor) GROUP BY 2, 3, 4, 5;
      INSERT INTO usage_sums
        SELECT 'squad', day, squad, '', model, model = 'rehearsal', SUM(calls), SUM(input_tokens), SUM(output_tokens),
          SUM(cache_read_tokens) FROM usage_daily JOIN actors USING (actor) GROUP BY 2, 3, 5;
      DROP TABLE actors;

      DROP TRIGGER usage_added;
      DROP TABLE usage_daily;
      CREATE TRIGGER usage_added AFTER INSERT ON usage BEGIN
        INSERT INTO usage_sums
          SELECT each.kind, substr(new.created_at, 1, 10), each.name, each.squad, new.model, new.rehearsal, 1, new.input_tokens,
            new.output_tokens, new.cache_read_tokens
          FROM (SELECT 'total' AS kind, '' AS name, '' AS squad
            UNION ALL SELECT 'actor', new.actor, ''
            UNION ALL SELECT 'conversation', coalesce(new.conversation, ''), ''
            UNION ALL SELECT 'squad', coalesce(new.squad, ''), ''
            UNION ALL SELECT 'agent', coalesce(new.agent, new.actor), coalesce(new.squad, '')
            UNION ALL SELECT 'task', coalesce(new.task, ''), ''
            UNION ALL SELECT 'run', coalesce(new.run, ''), ''
            UNION ALL SELECT 'source', coalesce(new.source, ''), '') AS each
          WHERE true
          ON CONFLICT (kind, day, name, squad, model, rehearsal) DO UPDATE SET calls = calls + 1,
            input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
            cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens;
      END;
      CREATE TRIGGER usage_is_kept BEFORE UPDATE ON usage BEGIN
        SELECT RAISE(ABORT, 'what was used is never changed');
      END;

      CREATE TABLE budget_decisions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        approval TEXT NOT NULL,
        raised INTEGER NOT NULL,
        tokens INTEGER NOT NULL DEFAULT 0,
        calls INTEGER NOT NULL DEFAULT 0,
        money REAL NOT NULL DEFAULT 0,
        owner TEXT NOT NULL,
        life INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        UNIQUE (approval, owner)
      );
      CREATE INDEX budget_decisions_by_budget ON budget_decisions (kind, name);
      CREATE TABLE budget_news (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        created_at TEXT NOT NULL,
        PRIMARY KEY (kind, name)
      ) WITHOUT ROWID;
    `,
  },
  {
    name: "0013-skills",
    sql: `
      CREATE TABLE skills (
        slug TEXT PRIMARY KEY,
        hash TEXT NOT NULL,
        enabled_at TEXT NOT NULL,
        enabled_by TEXT NOT NULL
      ) WITHOUT ROWID;
    `,
  },
  {
    name: "0014-steering",
    sql: `
      CREATE TABLE steers (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        message_id TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
        text TEXT NOT NULL,
        prompt_id TEXT,
        created_at TEXT NOT NULL
      );
      CREATE INDEX steers_by_message ON steers (message_id, seq);
    `,
  },
  {
    name: "0015-isolation",
    sql: `
      ALTER TABLE squads ADD COLUMN isolation TEXT NOT NULL DEFAULT 'none';
    `,
  },
  {
    name: "0016-for-the-page",
    sql: `
      ALTER TABLE run_steps ADD COLUMN prompt TEXT;
      CREATE INDEX tool_calls_of_pages ON tool_calls (created_at) WHERE tool IN ('wiki_write', 'wiki_delete');
    `,
  },
];
