import { z } from "zod";
import { Source } from "../protocol/messages.ts";
import { Occurrence, type OccurrenceState, Schedule } from "../protocol/schedules.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** A schedule with its internal fields. */
export interface ScheduleRow extends Schedule {
  /** The start for counting intervals. */
  anchorAt: string;
  /** The number of consecutive failures. */
  failures: number;
}

/** What an occurrence started. */
export type Begun = "message" | "task" | "run";

type Row = Record<string, string | number | null>;

const CreatedBy = Schedule.shape.createdBy;

/** Schedules and their occurrences. */
export function createScheduleRows(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert =
    db.prepare(`INSERT INTO schedules (id, when_given, text, tz, squad, swarm, conversation, catch_up, max_age, state,
    next_at, anchor_at, created_by, source, created_at)
    VALUES (:id, :when, :text, :tz, :squad, :swarm, :conversation, :catchUp, :maxAge, 'active', :nextAt, :anchorAt, :createdBy,
    :source, :createdAt)`);
  const find = db.prepare("SELECT * FROM schedules WHERE id = ?");
  const list = db.prepare(
    "SELECT * FROM schedules WHERE seq < coalesce((SELECT seq FROM schedules WHERE id = :before), 9e15) ORDER BY seq DESC LIMIT :limit",
  );
  const due = db.prepare("SELECT * FROM schedules WHERE state = 'active' AND next_at <= ? ORDER BY next_at LIMIT 1");
  const asking = db.prepare("SELECT * FROM schedules WHERE state = 'active' AND catch_up = 'ask' AND next_at <= ?");
  const unfinished = db.prepare("SELECT count(*) AS count FROM schedules WHERE state <> 'done'");
  const unfinishedOfModels = db.prepare(
    "SELECT count(*) AS count FROM schedules WHERE state <> 'done' AND json_extract(created_by, '$.by') = 'model'",
  );
  const earliest = db.prepare("SELECT min(next_at) AS at FROM schedules WHERE state = 'active'");
  const intervals = db.prepare(
    "SELECT * FROM schedules WHERE state = 'active' AND when_given LIKE 'every %' AND next_at > ? AND id > ? ORDER BY id LIMIT ?",
  );
  const move = db.prepare("UPDATE schedules SET next_at = ?, state = ? WHERE id = ?");
  const anchor = db.prepare("UPDATE schedules SET anchor_at = ?, next_at = ? WHERE id = ?");
  const setState = db.prepare("UPDATE schedules SET state = ?, reason = ?, next_at = ?, failures = 0 WHERE id = ?");
  const count = db.prepare("UPDATE schedules SET failures = ? WHERE id = ?");
  const remove = db.prepare("DELETE FROM schedules WHERE id = ?");
  const sourceOf = db.prepare("SELECT source FROM schedules WHERE id = ?");

  const add =
    db.prepare(`INSERT INTO occurrences (id, schedule, due_at, state, reason, message, task, run, finished_at, created_at)
    VALUES (:id, :schedule, :dueAt, :state, :reason, :message, :task, :run, :finishedAt, :createdAt)`);
  const has = db.prepare("SELECT 1 FROM occurrences WHERE schedule = ? AND due_at = ?");
  const openOf = db.prepare("SELECT * FROM occurrences WHERE schedule = ? AND state IN ('waiting','running')");
  const open = db.prepare("SELECT * FROM occurrences WHERE state IN ('waiting','running') ORDER BY seq");
  const by = (column: Begun) => db.prepare(`SELECT * FROM occurrences WHERE ${column} = ? AND state IN ('waiting','running')`);
  const openBy = { message: by("message"), task: by("task"), run: by("run") };
  const change = db.prepare("UPDATE occurrences SET state = ?, reason = coalesce(?, reason), finished_at = ? WHERE id = ?");
  const byId = db.prepare("SELECT * FROM occurrences WHERE id = ?");
  const removeOne = db.prepare("DELETE FROM occurrences WHERE id = ?");
  const ofSchedule = db.prepare(`SELECT * FROM occurrences WHERE schedule = :schedule
    AND (:before IS NULL OR (due_at, seq) < (SELECT due_at, seq FROM occurrences WHERE id = :before))
    ORDER BY due_at DESC, seq DESC LIMIT :limit`);

  const occurrences = (rows: unknown[]) => (rows as Row[]).map(occurrenceOf);
  return {
    insert({ createdBy, source, ...schedule }: Omit<ScheduleRow, "state" | "reason" | "failures"> & { source: Source }): void {
      insert.run({ ...schedule, createdBy: JSON.stringify(createdBy), source: JSON.stringify(source) });
    },
    find: (id: string): ScheduleRow | undefined => rowOf(find.get(id) as Row | undefined),
    list: ({ limit, before }: { limit: number; before?: string | undefined }): ScheduleRow[] =>
      (list.all({ limit, before: before ?? null }) as Row[]).map((row) => rowOf(row)!),
    /** The schedule that has been due the longest. */
    firstDue: (at: string): ScheduleRow | undefined => rowOf(due.get(at) as Row | undefined),
    /** Due schedules that ask a person about missed times. */
    dueWithQuestion: (at: string): ScheduleRow[] => (asking.all(at) as Row[]).map((row) => rowOf(row)!),
    /** How many schedules are pending, in total or created by models. */
    unfinished: (by: "anybody" | "model"): number =>
      ((by === "model" ? unfinishedOfModels : unfinished).get() as { count: number }).count,
    earliest: (): string | undefined => (earliest.get() as { at: string | null }).at ?? undefined,
    /** Interval schedules whose next time is after a given time, by id. */
    intervalsAfter: (at: string, { after, limit }: { after: string; limit: number }): ScheduleRow[] =>
      (intervals.all(at, after, limit) as Row[]).map((row) => rowOf(row)!),
    /** Sets the next time, or none. */
    move: (id: string, nextAt: string | undefined) => void move.run(nextAt ?? null, nextAt === undefined ? "done" : "active", id),
    anchor: (id: string, anchorAt: string, nextAt: string) => void anchor.run(anchorAt, nextAt, id),
    setState: (id: string, state: Schedule["state"], { reason, nextAt }: { reason?: string; nextAt?: string | undefined } = {}) =>
      void setState.run(state, reason ?? null, nextAt ?? null, id),
    countFailures: (id: string, failures: number) => void count.run(failures, id),
    remove: (id: string): boolean => Number(remove.run(id).changes) > 0,
    /** Sets where its replies go. */
    sourceOf: (id: string): Source | undefined => readJson(Source, (sourceOf.get(id) as Row | undefined)?.source ?? undefined),

    addOccurrence: (occurrence: Occurrence) => void add.run({ ...occurrence, createdAt: now().toISOString() }),
    removeOccurrence: (id: string) => void removeOne.run(id),
    hasOccurrence: (schedule: string, dueAt: string): boolean => has.get(schedule, dueAt) !== undefined,
    openOf: (schedule: string): Occurrence[] => occurrences(openOf.all(schedule)),
    open: (): Occurrence[] => occurrences(open.all()),
    openBy: (what: Begun, id: string): Occurrence[] => occurrences(openBy[what].all(id)),
    change(id: string, state: OccurrenceState, reason: string | null, finishedAt: string | null): Occurrence {
      change.run(state, reason, finishedAt, id);
      return occurrenceOf(byId.get(id) as Row);
    },
    occurrences: ({ schedule, limit, before }: { schedule: string; limit: number; before?: string | undefined }): Occurrence[] =>
      occurrences(ofSchedule.all({ schedule, limit, before: before ?? null })),
  };
}
export type ScheduleRows = ReturnType<typeof createScheduleRows>;

function rowOf(row: Row | undefined): ScheduleRow | undefined {
  if (row === undefined) return undefined;
  const createdBy = readJson(CreatedBy, row.created_by as string) ?? { by: "person" as const, channel: "api" };
  const seen = Schedule.omit({ createdBy: true }).parse({
    ...{
      ...row,
      when: row.when_given,
      catchUp: row.catch_up,
      maxAge: row.max_age,
      nextAt: row.next_at,
      createdAt: row.created_at,
    },
  });
  return {
    ...seen,
    createdBy,
    ...z.object({ anchorAt: z.string(), failures: z.number() }).parse({ anchorAt: row.anchor_at, failures: row.failures }),
  };
}

function occurrenceOf(row: Row): Occurrence {
  return Occurrence.parse({ ...row, dueAt: row.due_at, finishedAt: row.finished_at });
}
