const scheduleOf = (row: string) => `coalesce(
  (SELECT schedule FROM occurrences WHERE message = ${row}.owner),
  (SELECT schedule FROM occurrences WHERE task = ${row}.task),
  (SELECT schedule FROM occurrences WHERE run = ${row}.run),
  (SELECT o.schedule FROM agent_tasks t JOIN occurrences o ON o.message = CASE WHEN json_valid(t.origin) THEN json_extract(t.origin, '$.messageId') END
    WHERE t.id = ${row}.task),
  '')`;

/** The usage of each schedule: its messages, tasks and runs, and the tasks that its messages delegated. */
export const SCHEDULE_USAGE_MIGRATION = {
  name: "0035-usage-by-schedule",
  sql: `
    CREATE TEMP TABLE known AS SELECT substr(created_at, 1, 10) AS day, model, rehearsal, ${scheduleOf("usage")} AS schedule,
      input_tokens AS input, output_tokens AS output, cache_read_tokens AS cached FROM usage;
    INSERT INTO usage_sums
      SELECT 'schedule', day, schedule, '', model, rehearsal, COUNT(*), SUM(input), SUM(output), SUM(cached)
      FROM known WHERE schedule <> '' GROUP BY day, schedule, model, rehearsal;
    INSERT INTO usage_sums
      SELECT 'schedule', t.day, '', '', t.model, t.rehearsal, t.calls - coalesce(k.calls, 0), t.input_tokens - coalesce(k.input, 0),
        t.output_tokens - coalesce(k.output, 0), t.cache_read_tokens - coalesce(k.cached, 0)
      FROM usage_sums t LEFT JOIN (SELECT day, model, rehearsal, COUNT(*) AS calls, SUM(input) AS input, SUM(output) AS output,
        SUM(cached) AS cached FROM known WHERE schedule <> '' GROUP BY day, model, rehearsal) k
        ON k.day = t.day AND k.model = t.model AND k.rehearsal = t.rehearsal
      WHERE t.kind = 'total' AND t.calls > coalesce(k.calls, 0);
    DROP TABLE known;
    CREATE TRIGGER usage_added_by_schedule AFTER INSERT ON usage BEGIN
      INSERT INTO usage_sums VALUES ('schedule', substr(new.created_at, 1, 10), ${scheduleOf("new")}, '', new.model, new.rehearsal, 1,
          new.input_tokens, new.output_tokens, new.cache_read_tokens)
        ON CONFLICT (kind, day, name, squad, model, rehearsal) DO UPDATE SET calls = calls + 1,
          input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
          cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens;
    END;
  `,
};
