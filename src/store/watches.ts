import { z } from "zod";
import { newId } from "../lib/ids.ts";
import { TriggerKind, TriggerState, Watch, WatchTrigger } from "../protocol/watches.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** A watch with its internal fields. */
export interface WatchRow extends Watch {
  squad: string | null;
  /** Everything that changed before this time was examined. */
  since: string | null;
}

/** The text of a comment, issue or check result when it was seen. */
export const TriggerDetail = z.object({
  text: z.string(),
  /** The location of a comment. */
  path: z.string().optional(),
  line: z.number().nullable().optional(),
  replyTo: z.string().nullable().optional(),
  url: z.string().nullable().optional(),
});
export type TriggerDetail = z.infer<typeof TriggerDetail>;

export interface TriggerRow extends WatchTrigger {
  host: string;
  repo: string;
  /** The forge's id, and for an edit which version of the text. */
  externalId: string;
  version: string;
  detail: TriggerDetail;
  /** The round that handles it. */
  round: string | null;
}
export type NewTrigger = Pick<TriggerRow, "kind" | "number" | "by" | "externalId" | "version" | "detail"> & {
  state?: TriggerState;
  reason?: string | null;
};

/** One round of rework on a pull request. */
export interface RoundRow {
  id: string;
  watch: string;
  /** The pull request's row, and the run that made its branch. */
  pull: string;
  run: string;
  /** Counted from 1 per run, which may have several pull requests. */
  count: number;
  /** Whether a failed check triggered it. */
  red: boolean;
  prompt: string;
  state: "working" | "publishing" | "answering" | "done" | "failed" | "asked";
  reason: string | null;
}

type Row = Record<string, string | number | null>;

/** Watched repositories, the triggers seen there, and the rounds of work. */
export function createWatchRows({ db, transaction }: Store, now: () => Date = () => new Date()) {
  const insertWatch =
    db.prepare(`INSERT INTO watches (id, project_path, squad, forge, host, repo, label, mention, reviews, checks,
    max_rounds, state, created_at) VALUES (:id, :projectPath, :squad, :forge, :host, :repo, :label, :mention, :reviews, :checks,
    :maxRounds, 'on', :at)`);
  const adopt = createAdoption(db);
  const watches = db.prepare("SELECT * FROM watches ORDER BY seq");
  const oneWatch = db.prepare("SELECT * FROM watches WHERE id = ?");
  const watchAt = db.prepare("SELECT * FROM watches WHERE host = ? AND repo = ?");
  const removeWatch = db.prepare("DELETE FROM watches WHERE id = ?");
  const looked =
    db.prepare(`UPDATE watches SET state = :state, since = :since, looked_at = :lookedAt, next_at = :nextAt, saw = :saw,
    problem = :problem WHERE id = :id`);
  const insert =
    db.prepare(`INSERT INTO watch_triggers (id, watch, host, repo, number, kind, external_id, version, by_login, detail,
    state, reason, created_at, updated_at) VALUES (:id, :watch, :host, :repo, :number, :kind, :externalId, :version, :by, :detail,
    :state, :reason, :at, :at) ON CONFLICT DO NOTHING`);
  const versions = db.prepare(
    "SELECT * FROM watch_triggers WHERE host = ? AND repo = ? AND kind = ? AND external_id = ? ORDER BY seq",
  );
  const update = db.prepare(`UPDATE watch_triggers SET watch = :watch, version = :version, detail = :detail, state = :state,
    reason = :reason, run = :run, round = :round, updated_at = :at WHERE id = :id`);
  const one = db.prepare("SELECT * FROM watch_triggers WHERE id = ?");
  const open = db.prepare(
    "SELECT * FROM watch_triggers WHERE watch = ? AND state IN ('waiting','claiming','starting','working') ORDER BY seq",
  );
  const ofNumber = db.prepare("SELECT * FROM watch_triggers WHERE host = ? AND repo = ? AND number = ? ORDER BY seq");
  const ofRun = db.prepare("SELECT * FROM watch_triggers WHERE run = ? ORDER BY seq");
  const latest = db.prepare("SELECT * FROM watch_triggers WHERE watch = ? ORDER BY seq DESC LIMIT ?");
  const insertRound = db.prepare(`INSERT INTO watch_rounds (id, watch, pull, run, count, red, prompt, state, created_at)
    VALUES (:id, :watch, :pull, :run, :count, :red, :prompt, 'working', :at)`);
  const changeRound = db.prepare("UPDATE watch_rounds SET state = ?, reason = ?, finished_at = ? WHERE id = ?");
  const roundsOfRun = db.prepare("SELECT * FROM watch_rounds WHERE run = ? ORDER BY seq");
  const openRounds = db.prepare(
    "SELECT * FROM watch_rounds WHERE watch = ? AND state IN ('working','publishing','answering') ORDER BY seq",
  );
  const at = () => now().toISOString();
  const rowsOf = (rows: unknown[]): TriggerRow[] => (rows as Row[]).map(triggerOf);
  const find = (id: string): WatchRow | undefined => {
    const row = oneWatch.get(id) as Row | undefined;
    return row && watchOf(row);
  };

  return {
    transaction,
    insert(
      watch: Pick<WatchRow, "id" | "projectPath" | "squad" | "forge" | "host" | "repo" | "label" | "mention" | "maxRounds"> & {
        reviews: boolean;
        checks: boolean;
      },
    ): void {
      transaction(() => {
        insertWatch.run({ ...watch, reviews: Number(watch.reviews), checks: Number(watch.checks), at: at() });
        adopt(watch);
      });
    },
    list: (): WatchRow[] => (watches.all() as Row[]).map(watchOf),
    find,
    at(host: string, repo: string): WatchRow | undefined {
      const row = watchAt.get(host, repo) as Row | undefined;
      return row && watchOf(row);
    },
    change(id: string, change: Partial<Pick<WatchRow, "state" | "since" | "lookedAt" | "nextAt" | "saw" | "problem">>): void {
      const row = find(id);
      if (!row) return;
      const { state, since, lookedAt, nextAt, saw, problem } = { ...row, ...change };
      looked.run({ id, state, since, lookedAt, nextAt, saw, problem });
    },
    remove: (id: string) => void removeWatch.run(id),

    /**
     * Records a trigger once. New text replaces that of a waiting trigger; an edit after IO acted on it is ignored. Returns whether
     * it is new and waiting.
     */
    see({ id: watch, host, repo }: WatchRow, { detail, ...seen }: NewTrigger): boolean {
      const earlier = rowsOf(versions.all(host, repo, seen.kind, seen.externalId));
      if (earlier.some(({ version }) => version === seen.version)) return false;
      const waiting = earlier.find(({ state }) => state === "waiting" || state === "asked");
      if (waiting) {
        const row = { ...waiting, version: seen.version, detail };
        update.run({ ...columns(row), at: at() });
        return true;
      }
      const isActedOn = earlier.some(({ state }) => state !== "ignored");
      const late = isActedOn && {
        state: "ignored" as const,
        reason: "it was edited after IO had acted on it; write a new comment",
      };
      const row = {
        ...{ id: newId("g"), watch, host, repo, detail: JSON.stringify(detail), at: at() },
        ...{ state: "waiting" as const, reason: null, ...seen, ...late },
      };
      return Number(insert.run(row).changes) > 0 && row.state === "waiting";
    },
    trigger: (id: string): TriggerRow | undefined => rowsOf([one.get(id)].filter(Boolean))[0],
    move(id: string, change: Partial<Pick<TriggerRow, "state" | "reason" | "run" | "round">>): TriggerRow {
      const row = { ...triggerOf(one.get(id) as Row), ...change };
      update.run({ ...columns(row), at: at() });
      return row;
    },
    /** Triggers that still need work by IO. */
    open: (watch: string): TriggerRow[] => rowsOf(open.all(watch)),
    ofNumber: ({ host, repo }: Pick<WatchRow, "host" | "repo">, number: number): TriggerRow[] =>
      rowsOf(ofNumber.all(host, repo, number)),
    ofRun: (run: string): TriggerRow[] => rowsOf(ofRun.all(run)),
    latest: (watch: string, limit: number): TriggerRow[] => rowsOf(latest.all(watch, limit)),

    beginRound({ red, ...round }: Omit<RoundRow, "state" | "reason">): void {
      insertRound.run({ ...round, red: Number(red), at: at() });
    },
    moveRound(id: string, state: RoundRow["state"], reason: string | null = null): void {
      const isOver = !["working", "publishing", "answering"].includes(state);
      changeRound.run(state, reason, isOver ? at() : null, id);
    },
    /** The rounds of all pull requests of a run. */
    roundsOf: (run: string): RoundRow[] => (roundsOfRun.all(run) as Row[]).map(roundOf),
    openRounds: (watch: string): RoundRow[] => (openRounds.all(watch) as Row[]).map(roundOf),
  };
}
export type WatchRows = ReturnType<typeof createWatchRows>;

/** Lets a new watch continue the triggers of an earlier one of the same repository. */
function createAdoption(db: Store["db"]) {
  const triggers = db.prepare(`UPDATE watch_triggers SET watch = :id WHERE host = :host AND repo = :repo
    AND state IN ('held','waiting','claiming','starting','working')`);
  const rounds = db.prepare(`UPDATE watch_rounds SET watch = :id WHERE state IN ('working','publishing','answering')
    AND pull IN (SELECT id FROM pulls WHERE host = :host AND repo = :repo)`);
  return ({ id, host, repo }: Pick<WatchRow, "id" | "host" | "repo">): void => {
    triggers.run({ id, host, repo });
    rounds.run({ id, host, repo });
  };
}

function watchOf(row: Row): WatchRow {
  const read = Watch.parse({
    ...row,
    ...{ projectPath: row.project_path, reviews: row.reviews === 1, checks: row.checks === 1, maxRounds: row.max_rounds },
    ...{ lookedAt: row.looked_at, nextAt: row.next_at, createdAt: row.created_at },
  });
  return { ...read, squad: textIn(row.squad), since: textIn(row.since) };
}

function triggerOf(row: Row): TriggerRow {
  const read = WatchTrigger.parse({ ...row, by: row.by_login, createdAt: row.created_at, updatedAt: row.updated_at });
  return {
    ...read,
    ...{ kind: TriggerKind.parse(row.kind), state: TriggerState.parse(row.state) },
    ...{ host: String(row.host), repo: String(row.repo), externalId: String(row.external_id), version: String(row.version) },
    ...{ round: textIn(row.round), detail: readJson(TriggerDetail, String(row.detail)) ?? { text: "" } },
  };
}

function columns({ id, watch, version, detail, state, reason, run, round }: TriggerRow) {
  return { id, watch, version, detail: JSON.stringify(detail), state, reason, run, round };
}

const Round = z.object({
  ...{ id: z.string(), watch: z.string(), pull: z.string(), run: z.string(), count: z.number(), prompt: z.string() },
  red: z.number().transform(Boolean),
  state: z.enum(["working", "publishing", "answering", "done", "failed", "asked"]),
  reason: z.string().nullable(),
});
const roundOf = (row: Row): RoundRow => Round.parse(row);
const textIn = (value: string | number | null | undefined): string | null => (value == null ? null : String(value));
