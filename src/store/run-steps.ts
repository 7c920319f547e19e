import { z } from "zod";
import { type RunAttempt, type RunStep, StepKind } from "../protocol/runs.ts";
import { noUsage, Usage } from "../protocol/usage.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

const Text = z.string().nullable();

export const StepRow = z.object({
  key: z.string(),
  kind: StepKind,
  phase: z.string(),
  stream: z.number().nullable(),
  agent: Text,
  model: Text,
  /** The pipeline's name for the model; in old rows `model` contains that name. */
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
  worker: Text,
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
  /** The prompt for the agent. */
  prompt?: string | null;
  /** Its result is acted on and cannot be reproduced, so the write waits for the disk. */
  decides?: boolean;
}

const Called = z.object({ agent: Text, model: Text, asked: Text });
/** A call with its agent and models; `asked` is null if the requested model answered. */
export type Called = z.infer<typeof Called>;

export interface StepEnd {
  state: "done" | "failed";
  result: string;
  /** The model that answered, if known. */
  model?: string | null;
  verdict?: string | null;
  error?: string | null;
  /** The worker that did it. */
  worker?: string | null;
  usage?: Usage;
}

/** The journals of runs. Skips steps of other versions that this one cannot read. */
export interface RunSteps {
  steps(id: string): StepRow[];
  /** Only the steps of one kind, to avoid loading the texts of the others. */
  stepsOf(id: string, kind: StepRow["kind"]): StepRow[];
  /** Who was asked, and who answered, in a phase or one of its streams. */
  calls(id: string, phase: string, stream: number | null): Called[];
  /** The usage of each step. */
  usages(id: string): Usage[];
  /** Whether there are steps that this version of IO cannot read. */
  hasForeignSteps(id: string): boolean;
  step(id: string, key: string): StepRow | undefined;
  /** The prompt of a step, if it was kept. */
  prompt(id: string, key: string): string | null;
  /** Records the start of a step. Keeps the state of an earlier attempt if the inputs are the same. */
  begin(id: string, head: StepHead, inputsHash: string, now: string): void;
  /** Records a call's session and prompt, so that it can be found after a restart. */
  track(id: string, key: string, call: { attempts: number; sessionId: string; promptId: string | null }): void;
  /** Stores an agent's answer. */
  answer(id: string, key: string, end: StepEnd, now: string): void;
  /** Stores a result that is acted on and cannot be reproduced. On disk when this returns. */
  end(id: string, key: string, end: StepEnd, now: string): void;
  /** Stores a result that can be recomputed from earlier steps. */
  conclude(id: string, key: string, end: StepEnd, now: string): void;
  /** Stores the intermediate state of a running step. */
  note(id: string, key: string, result: string): void;
  /** The previous prompt in the same session. */
  promptBefore(id: string, sessionId: string, key: string): string | undefined;
  /** The stored answers of a session, oldest first. */
  resultsIn(id: string, sessionId: string): string[];
  /** Records the start of a step's attempt and returns its number. */
  tryBegins(id: string, key: string, now: string): number;
  tryEnds(number: number, error: string | null, now: string): void;
  /** All attempts of steps with more than one, by step key. */
  tries(id: string): Map<string, RunAttempt[]>;
  /** Deletes steps, so that they run again. */
  forget(id: string, keys: readonly string[]): void;
}

export function openRunSteps(store: Store): RunSteps {
  return { ...readers(store), ...writers(store) };
}

function readers({ db }: Store) {
  const select = (where: string) => db.prepare(`SELECT ${Object.keys(StepRow.shape).join(", ")} FROM run_steps WHERE ${where}`);
  const all = select("run_id = ? ORDER BY seq");
  const ofKind = select("run_id = ? AND kind = ? ORDER BY seq");
  const one = select("run_id = ? AND key = ?");
  const called = db.prepare(
    "SELECT agent, model, nullif(asked, model) AS asked FROM run_steps WHERE run_id = ? AND kind = 'call' AND phase = ? AND stream IS ? ORDER BY seq",
  );
  const usages = db.prepare("SELECT usage FROM run_steps INDEXED BY run_steps_usage WHERE run_id = ? AND usage IS NOT NULL");
  const kinds = db.prepare("SELECT DISTINCT kind FROM run_steps WHERE run_id = ?");
  const prompt = db.prepare("SELECT prompt FROM run_steps WHERE run_id = ? AND key = ?");
  const results = db.prepare(
    "SELECT result FROM run_steps WHERE run_id = ? AND session_id = ? AND result IS NOT NULL ORDER BY seq",
  );
  const before = db.prepare(
    "SELECT prompt_id FROM run_steps WHERE run_id = ? AND session_id = ? AND key <> ? AND prompt_id IS NOT NULL ORDER BY started_at DESC, seq DESC LIMIT 1",
  );
  const tries = db.prepare(
    "SELECT key, started_at AS startedAt, finished_at AS finishedAt, error FROM run_attempts WHERE run_id = ? ORDER BY seq",
  );
  const readable = (rows: unknown[]): StepRow[] => rows.flatMap((row) => StepRow.safeParse(row).data ?? []);
  return {
    steps: (id: string) => readable(all.all(id)),
    stepsOf: (id: string, kind: StepRow["kind"]) => readable(ofKind.all(id, kind)),
    calls: (id: string, phase: string, stream: number | null) =>
      called.all(id, phase, stream).flatMap((row) => Called.safeParse(row).data ?? []),
    usages: (id: string) => usages.all(id).map((row) => usageOf(row as Pick<StepRow, "usage">)),
    hasForeignSteps: (id: string) => kinds.all(id).some((row) => !StepKind.safeParse((row as { kind: unknown }).kind).success),
    tries(id: string) {
      const byKey = new Map<string, RunAttempt[]>();
      for (const { key, ...attempt } of tries.all(id) as unknown as (RunAttempt & { key: string })[])
        byKey.set(key, [...(byKey.get(key) ?? []), attempt]);
      return new Map([...byKey].filter(([, attempts]) => attempts.length > 1));
    },
    step: (id: string, key: string) => StepRow.safeParse(one.get(id, key)).data,
    prompt: (id: string, key: string) => z.object({ prompt: z.string() }).safeParse(prompt.get(id, key)).data?.prompt ?? null,
    promptBefore: (id: string, sessionId: string, key: string) =>
      z.object({ prompt_id: z.string() }).safeParse(before.get(id, sessionId, key)).data?.prompt_id,
    resultsIn: (id: string, sessionId: string) =>
      z
        .array(z.object({ result: z.string() }))
        .parse(results.all(id, sessionId))
        .map(({ result }) => result),
  };
}

function writers(store: Store) {
  const { db } = store;
  const begin = db.prepare(`
    INSERT INTO run_steps (run_id, key, kind, phase, stream, agent, model, asked, prompt, inputs_hash, state, started_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'begun', ?)
    ON CONFLICT (run_id, key) DO UPDATE SET state = 'begun', result = NULL, verdict = NULL, error = NULL, finished_at = NULL,
      attempts = CASE WHEN inputs_hash = excluded.inputs_hash THEN attempts ELSE 0 END,
      session_id = CASE WHEN inputs_hash = excluded.inputs_hash THEN session_id END,
      prompt_id = CASE WHEN inputs_hash = excluded.inputs_hash THEN prompt_id END,
      model = excluded.model, asked = excluded.asked, agent = excluded.agent, prompt = excluded.prompt, inputs_hash = excluded.inputs_hash, started_at = excluded.started_at`);
  const track = db.prepare("UPDATE run_steps SET attempts = ?, session_id = ?, prompt_id = ? WHERE run_id = ? AND key = ?");
  const end = db.prepare(
    "UPDATE run_steps SET state = ?, result = ?, model = coalesce(?, model), verdict = ?, error = ?, usage = ?, worker = ?, finished_at = ? WHERE run_id = ? AND key = ?",
  );
  const note = db.prepare("UPDATE run_steps SET result = ? WHERE run_id = ? AND key = ?");
  const tried = db.prepare("INSERT INTO run_attempts (run_id, key, started_at) VALUES (?, ?, ?)");
  const triedOut = db.prepare("UPDATE run_attempts SET finished_at = ?, error = ? WHERE seq = ?");
  const forget = db.prepare("DELETE FROM run_steps WHERE run_id = ? AND key = ?");

  const write: RunSteps["end"] = (id, key, { state, result, model, verdict, error, usage, worker }, now) => {
    const spent = usage ? JSON.stringify(usage) : null;
    end.run(state, result, model ?? null, verdict ?? null, error ?? null, spent, worker ?? null, now, id, key);
  };
  const start: RunSteps["begin"] = (id, { key, kind, phase, stream, agent, model, asked, prompt }, hash, now) =>
    void begin.run(
      ...([id, key, kind, phase, stream ?? null, agent ?? null, model ?? null, asked ?? null, prompt ?? null] as const),
      ...([hash, now] as const),
    );
  return {
    // A step's start is only a hint for a restart: if a power cut loses it, the step starts again.
    begin: ((id, head, hash, now) => store.soft(() => start(id, head, hash, now))) satisfies RunSteps["begin"],
    track: ((id, key, { attempts, sessionId, promptId }) =>
      store.soft(() => void track.run(attempts, sessionId, promptId, id, key))) satisfies RunSteps["track"],
    // An answer was paid for, so flush it; nobody outside this run relies on it yet.
    answer: ((id, key, ending, now) => store.soon(() => write(id, key, ending, now))) satisfies RunSteps["answer"],
    end: write,
    conclude: ((id, key, ending, now) => store.soft(() => write(id, key, ending, now))) satisfies RunSteps["conclude"],
    note: (id: string, key: string, result: string) => store.soft(() => void note.run(result, id, key)),
    tryBegins: (id: string, key: string, now: string) => store.soft(() => Number(tried.run(id, key, now).lastInsertRowid)),
    tryEnds: (number: number, error: string | null, now: string) => store.soft(() => void triedOut.run(now, error, number)),
    forget: (id: string, keys: readonly string[]) =>
      store.transaction(() => {
        for (const key of keys) forget.run(id, key);
      }),
  };
}

/** A step for display, without its result's text. */
export function stepOf(row: StepRow): RunStep {
  return {
    key: row.key,
    kind: row.kind,
    phase: row.phase,
    stream: row.stream,
    agent: row.agent,
    model: row.model,
    // Always name the rehearsal model in full, so that it is not mistaken for a real one.
    asked: row.asked === row.model && row.asked !== "rehearsal" ? null : row.asked,
    state: row.state,
    attempts: row.attempts,
    worker: row.worker,
    verdict: row.verdict,
    error: row.error,
    usage: usageOf(row),
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}

export function usageOf(row: Pick<StepRow, "usage">): Usage {
  return readJson(Usage, row.usage) ?? noUsage();
}
