import { z } from "zod";
import { RunOutcome } from "../protocol/runs.ts";
import type { Store } from "./open.ts";
import { openRunSteps, type RunSteps } from "./run-steps.ts";
import { createWaits, type Waits } from "./waits.ts";

export { type StepEnd, type StepHead, StepRow, stepOf, usageOf } from "./run-steps.ts";

const Text = z.string().nullable();

/** A run's own row; everything else is in its steps. */
export const RunRow = z.object({
  id: z.string(),
  status: z.enum(["running", "done", "failed", "cancelled"]),
  /** Also null for a value of another version of IO. */
  outcome: RunOutcome.nullable().catch(null),
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
  /** How often it was started or resumed. */
  lives: z.number(),
  cancel_asked: z.number().transform(Boolean),
  created_at: z.string(),
  finished_at: Text,
});
export type RunRow = z.infer<typeof RunRow>;

/** Tables of swarm runs and their journals. */
export interface Runs extends RunSteps {
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
  /** Unfinished runs, latest first, whether or not they are running. */
  unfinished(): RunRow[];
  /** What a run waits for, if a person has to decide. */
  waitsFor: Waits;
  /** Marks a run as running. */
  setRunning(id: string): void;
  setInputs(id: string, inputs: string): void;
  /** The folders that runs have used. */
  projects(): string[];
  askToCancel(id: string): void;
  cancelAsked(id: string): boolean;
  setTree(id: string, tree: { branch: string | null; base: string | null; tree: string | null }): void;
  setApplied(id: string): void;
  finish(id: string, end: { status: RunRow["status"]; outcome: RunOutcome; reason: string | null; now: string }): void;
}

export function openRuns(store: Store): Runs {
  const { db } = store;
  const columns = Object.keys(RunRow.shape).join(", ");
  const insert = db.prepare(
    "INSERT INTO runs (id, status, project_path, issue, inputs, conversation, squad, created_at) VALUES (?, 'running', ?, ?, ?, ?, ?, ?)",
  );
  const one = db.prepare(`SELECT ${columns} FROM runs WHERE id = ?`);
  const many = db.prepare(
    `SELECT ${columns} FROM runs WHERE seq < coalesce((SELECT seq FROM runs WHERE id = ?), 9e15) ORDER BY seq DESC LIMIT ?`,
  );
  const unfinished = db.prepare(
    `SELECT ${columns} FROM runs INDEXED BY runs_unfinished WHERE status = 'running' ORDER BY seq DESC`,
  );
  const running = db.prepare(
    "UPDATE runs SET status = 'running', outcome = NULL, reason = NULL, finished_at = NULL, lives = lives + 1, cancel_asked = 0 WHERE id = ?",
  );
  const inputs = db.prepare("UPDATE runs SET inputs = ? WHERE id = ?");
  const ask = db.prepare("UPDATE runs SET cancel_asked = 1 WHERE id = ?");
  const asked = db.prepare("SELECT cancel_asked AS asked FROM runs WHERE id = ?");
  const tree = db.prepare("UPDATE runs SET branch = ?, base = ?, tree = ? WHERE id = ?");
  const applied = db.prepare("UPDATE runs SET applied = 1 WHERE id = ?");
  const finish = db.prepare("UPDATE runs SET status = ?, outcome = ?, reason = ?, finished_at = ? WHERE id = ?");
  const nextProject = db.prepare("SELECT min(project_path) AS path FROM runs WHERE project_path > ?");
  const readable = (rows: unknown[]): RunRow[] => rows.flatMap((row) => RunRow.safeParse(row).data ?? []);

  return {
    ...openRunSteps(store),
    create: ({ id, projectPath, issue, inputs: given, conversation, squad, now }) =>
      void insert.run(id, projectPath, issue, given, conversation ?? null, squad ?? null, now),
    get: (id) => RunRow.safeParse(one.get(id)).data,
    list: (limit, from) => readable(many.all(from ?? "", limit)),
    unfinished: () => readable(unfinished.all()),
    waitsFor: createWaits(store),
    // Everything else of this attempt is written after it, so a power cut that loses this loses all of that too.
    setRunning: (id) => store.soft(() => void running.run(id)),
    setInputs: (id, to) => void inputs.run(to, id),
    projects() {
      const paths: string[] = [];
      const after = (path: string) => (nextProject.get(path) as { path: string | null }).path;
      for (let path = after(""); path !== null; path = after(path)) paths.push(path);
      return paths;
    },
    askToCancel: (id) => void ask.run(id),
    cancelAsked: (id) => (asked.get(id) as { asked: number } | undefined)?.asked === 1,
    setTree: (id, to) => store.soon(() => void tree.run(to.branch, to.base, to.tree, id)),
    setApplied: (id) => void applied.run(id),
    finish: (id, { status, outcome, reason, now }) => void finish.run(status, outcome, reason, now, id),
  };
}
