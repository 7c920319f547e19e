import { z } from "zod";
import { RunOutcome, type RunStep, StepKind } from "../protocol/runs.ts";
import { noUsage, Usage } from "../protocol/usage.ts";
import type { Store } from "./open.ts";

const Text = z.string().nullable();

/** A run's own row; everything else of it is in its steps. */
export const RunRow = z.object({
  id: z.string(),
  status: z.enum(["running", "done", "failed", "cancelled"]),
  outcome: RunOutcome.nullable(),
  reason: Text,
  project_path: z.string(),
  issue: z.string(),
  inputs: z.string(),
  branch: Text,
  base: Text,
  tree: Text,
  applied: z.number().transform(Boolean),
  conversation: Text,
  squad: Text,
  pid: z.number().nullable(),
  /** How many processes have worked on it, one after another. */
  lives: z.number(),
  beat_at: Text,
  cancel_asked: z.number().transform(Boolean),
  created_at: z.string(),
  finished_at: Text,
});
export type RunRow = z.infer<typeof RunRow>;

export const StepRow = z.object({
  key: z.string(),
  kind: StepKind,
  phase: z.string(),
  stream: z.number().nullable(),
  agent: Text,
  model: Text,
  /** The pipeline's name for the model; rows from before there was one have that name as their model. */
  asked: Text,
  inputs_hash: z.string(),
  state: z.enum(["begun", "done", "failed"]),
  attempts: z.number(),
  session_id: Text,
  prompt_id: Text,
  result: Text,
  verdict: Text,
  error: Text,
  usage: Text,
  started_at: z.string(),
  finished_at: Text,
});
export type StepRow = z.infer<typeof StepRow>;

export interface StepHead {
  key: string;
  kind: StepRow["kind"];
  phase: string;
  stream?: number | null;
  agent?: string | null;
  model?: string | null;
  asked?: string | null;
}

export interface StepEnd {
  state: "done" | "failed";
  result: string;
  /** The model that answered, where that is known. */
  model?: string | null;
  verdict?: string | null;
  error?: string | null;
  usage?: Usage;
}

/** The tables of swarm runs and of their journals. */
export interface Runs {
  create(run: {
    id: string;
    projectPath: string;
    issue: string;
    inputs: string;
    conversation?: string;
    squad?: string;
    now: string;
  }): void;
  get(id: string): RunRow | undefined;
  list(limit: number, before?: string): RunRow[];
  /** Who works on it now. */
  claim(id: string, pid: number, now: string): void;
  setInputs(id: string, inputs: string): void;
  beat(id: string, now: string): void;
  askToCancel(id: string): void;
  cancelAsked(id: string): boolean;
  setTree(id: string, tree: { branch: string | null; base: string | null; tree: string | null }): void;
  setApplied(id: string): void;
  finish(id: string, end: { status: RunRow["status"]; outcome: RunOutcome; reason: string | null; now: string }): void;
  /** Nobody works on it any more, though it has not ended. */
  release(id: string): void;
  steps(id: string): StepRow[];
  step(id: string, key: string): StepRow | undefined;
  /** Writes that a step begins; what an earlier life knew of it stays known when the inputs are the same. */
  begin(id: string, head: StepHead, inputsHash: string, now: string): void;
  /** Notes which conversation and prompt a call is, so that a later life can find it again. */
  track(id: string, key: string, call: { attempts: number; sessionId: string; promptId: string | null }): void;
  end(id: string, key: string, end: StepEnd, now: string): void;
  /** Writes a fact that follows from steps already written, and so can be found again. */
  conclude(id: string, key: string, end: StepEnd, now: string): void;
  /** Writes what a begun step already knows. */
  note(id: string, key: string, result: string): void;
  /** The prompt that came before in the same session. */
  promptBefore(id: string, sessionId: string, key: string): string | undefined;
  /** What was answered in a session, as it was written down, oldest first. */
  resultsIn(id: string, sessionId: string): string[];
  /** Forgets steps, so that they are done again. */
  forget(id: string, keys: readonly string[]): void;
}

export function openRuns(store: Store): Runs {
  const { db } = store;
  const columns = Object.keys(RunRow.shape).join(", ");
  const stepColumns = Object.keys(StepRow.shape).join(", ");
  const insert = db.prepare(
    "INSERT INTO runs (id, status, project_path, issue, inputs, conversation, squad, created_at) VALUES (?, 'running', ?, ?, ?, ?, ?, ?)",
  );
  const one = db.prepare(`SELECT ${columns} FROM runs WHERE id = ?`);
  const many = db.prepare(
    `SELECT ${columns} FROM runs WHERE seq < coalesce((SELECT seq FROM runs WHERE id = ?), 9e15) ORDER BY seq DESC LIMIT ?`,
  );
  const claim = db.prepare(
    "UPDATE runs SET status = 'running', outcome = NULL, reason = NULL, finished_at = NULL, pid = ?, lives = lives + 1, beat_at = ?, cancel_asked = 0 WHERE id = ?",
  );
  const inputs = db.prepare("UPDATE runs SET inputs = ? WHERE id = ?");
  const beat = db.prepare("UPDATE runs SET beat_at = ? WHERE id = ?");
  const ask = db.prepare("UPDATE runs SET cancel_asked = 1 WHERE id = ?");
  const tree = db.prepare("UPDATE runs SET branch = ?, base = ?, tree = ? WHERE id = ?");
  const applied = db.prepare("UPDATE runs SET applied = 1 WHERE id = ?");
  const finish = db.prepare("UPDATE runs SET status = ?, outcome = ?, reason = ?, finished_at = ?, pid = NULL WHERE id = ?");
  const release = db.prepare("UPDATE runs SET pid = NULL WHERE id = ?");
  const steps = db.prepare(`SELECT ${stepColumns} FROM run_steps WHERE run_id = ? ORDER BY seq`);
  const step = db.prepare(`SELECT ${stepColumns} FROM run_steps WHERE run_id = ? AND key = ?`);
  const begin = db.prepare(`
    INSERT INTO run_steps (run_id, key, kind, phase, stream, agent, model, asked, inputs_hash, state, started_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'begun', ?)
    ON CONFLICT (run_id, key) DO UPDATE SET state = 'begun', result = NULL, verdict = NULL, error = NULL, finished_at = NULL,
      attempts = CASE WHEN inputs_hash = excluded.inputs_hash THEN attempts ELSE 0 END,
      session_id = CASE WHEN inputs_hash = excluded.inputs_hash THEN session_id END,
      prompt_id = CASE WHEN inputs_hash = excluded.inputs_hash THEN prompt_id END,
      model = excluded.model, asked = excluded.asked, agent = excluded.agent, inputs_hash = excluded.inputs_hash, started_at = excluded.started_at`);
  const track = db.prepare("UPDATE run_steps SET attempts = ?, session_id = ?, prompt_id = ? WHERE run_id = ? AND key = ?");
  const end = db.prepare(
    "UPDATE run_steps SET state = ?, result = ?, model = coalesce(?, model), verdict = ?, error = ?, usage = ?, finished_at = ? WHERE run_id = ? AND key = ?",
  );
  const note = db.prepare("UPDATE run_steps SET result = ? WHERE run_id = ? AND key = ?");
  const results = db.prepare(
    "SELECT result FROM run_steps WHERE run_id = ? AND session_id = ? AND result IS NOT NULL ORDER BY seq",
  );
  const before = db.prepare(
    "SELECT prompt_id FROM run_steps WHERE run_id = ? AND session_id = ? AND key <> ? AND prompt_id IS NOT NULL ORDER BY started_at DESC, seq DESC LIMIT 1",
  );
  const forget = db.prepare("DELETE FROM run_steps WHERE run_id = ? AND key = ?");

  const write: Runs["end"] = (id, key, { state, result, model, verdict, error, usage }, now) =>
    void end.run(
      state,
      result,
      model ?? null,
      verdict ?? null,
      error ?? null,
      usage ? JSON.stringify(usage) : null,
      now,
      id,
      key,
    );

  return {
    create: ({ id, projectPath, issue, inputs: given, conversation, squad, now }) =>
      void insert.run(id, projectPath, issue, given, conversation ?? null, squad ?? null, now),
    get(id) {
      const row = one.get(id);
      return row === undefined ? undefined : RunRow.parse(row);
    },
    list: (limit, from) => many.all(from ?? "", limit).map((row) => RunRow.parse(row)),
    claim: (id, pid, now) => void claim.run(pid, now, id),
    setInputs: (id, to) => void inputs.run(to, id),
    beat: (id, now) => store.soft(() => void beat.run(now, id)),
    askToCancel: (id) => void ask.run(id),
    cancelAsked: (id) => RunRow.pick({ cancel_asked: true }).safeParse(one.get(id)).data?.cancel_asked ?? false,
    setTree: (id, to) => void tree.run(to.branch, to.base, to.tree, id),
    setApplied: (id) => void applied.run(id),
    finish: (id, { status, outcome, reason, now }) => void finish.run(status, outcome, reason, now, id),
    release: (id) => void release.run(id),
    steps: (id) => steps.all(id).map((row) => StepRow.parse(row)),
    step(id, key) {
      const row = step.get(id, key);
      return row === undefined ? undefined : StepRow.parse(row);
    },
    // That a step begins is only a hint for a later life: should a power cut take it, the step is begun again.
    begin: (id, head, hash, now) =>
      store.soft(
        () =>
          void begin.run(
            id,
            head.key,
            head.kind,
            head.phase,
            head.stream ?? null,
            head.agent ?? null,
            head.model ?? null,
            head.asked ?? null,
            hash,
            now,
          ),
      ),
    track: (id, key, { attempts, sessionId, promptId }) =>
      store.soft(() => void track.run(attempts, sessionId, promptId, id, key)),
    end: write,
    conclude: (id, key, ending, now) => store.soft(() => write(id, key, ending, now)),
    note: (id, key, result) => store.soft(() => void note.run(result, id, key)),
    promptBefore: (id, sessionId, key) =>
      z.object({ prompt_id: z.string() }).safeParse(before.get(id, sessionId, key)).data?.prompt_id,
    resultsIn: (id, sessionId) =>
      z
        .array(z.object({ result: z.string() }))
        .parse(results.all(id, sessionId))
        .map(({ result }) => result),
    forget: (id, keys) =>
      store.transaction(() => {
        for (const key of keys) forget.run(id, key);
      }),
  };
}

/** A step as it is shown: without the result's text. */
export function stepOf(row: StepRow): RunStep {
  return {
    key: row.key,
    kind: row.kind,
    phase: row.phase,
    stream: row.stream,
    agent: row.agent,
    model: row.model,
    asked: row.asked === row.model ? null : row.asked,
    state: row.state,
    attempts: row.attempts,
    verdict: row.verdict,
    error: row.error,
    usage: usageOf(row),
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}

export function usageOf(row: Pick<StepRow, "usage">): Usage {
  return row.usage === null ? noUsage() : Usage.parse(JSON.parse(row.usage));
}
