import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createStands } from "../../git/stand.ts";
import { type Conventions, findConventions, tellConventions } from "../../project/conventions.ts";
import type { RunRow, Runs } from "../../store/runs.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { whySkipped } from "../pipeline/conditions.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import { kindOf } from "../pipeline/kind.ts";
import { comparedModels } from "../pipeline/named-models.ts";
import type { Placed } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { createChecks } from "../streams/checks.ts";
import { createAgentSessions } from "./agent-sessions.ts";
import { createCaller, type Expected } from "./caller.ts";
import type { RunContext } from "./context.ts";
import type { SwarmDeps } from "./deps.ts";
import { openDocuments } from "./documents.ts";
import { clearEarlier } from "./earlier-documents.ts";
import { createJournal, recorders } from "./journal.ts";
import { servingAmong } from "./models.ts";
import { createRunAway } from "./run-away.ts";
import { servedLine } from "./served.ts";
import { statusOf } from "./view.ts";
import { openRunWorkplace, placeOf } from "./workplace.ts";
import { environmentIn, type LookedAt, type Workplace } from "./workspace.ts";

/** One life of a run. */
export interface RunLife {
  row: RunRow;
  loaded: LoadedPipeline;
  inputs: Inputs;
  settings: RunSettings;
  looked?: LookedAt | undefined;
  conventions?: Promise<Conventions> | undefined;
  signal: AbortSignal;
  tell: RunContext["tell"];
}

export interface OpenRunDeps extends Omit<SwarmDeps, "store" | "shipped"> {
  runs: Runs;
  kinds: readonly PhaseKind[];
  env: NodeJS.ProcessEnv;
  now: () => Date;
}

/** So many of the latest runs are looked at for documents that they left. */
const MOST_EARLIER = 200;

/** Opens what the phases of a run work with: its folder, its journal, its place in the project, and the agents. */
export async function openRun(deps: OpenRunDeps, life: RunLife): Promise<RunContext> {
  const { engine, emit, bind, git, wrap, redactor, findChecks, runsFolder, onSay, spending, runs, kinds, env, now } = deps;
  const { checkDeadlineMs = 600_000 } = deps;
  const { row, loaded, inputs, settings, looked, signal, tell } = life;
  const { id } = row;
  const { pipeline, agents } = loaded;
  const serving = servingAmong(inputs.models);
  const folder = join(runsFolder, id);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const documents = openDocuments({ projectPath: row.project_path, docDir: settings.docDir, folder, now });
  const held = deps.heldIn?.(row.project_path) ?? {};
  const standIn = createStands({ projectPath: row.project_path, folder, height: held.sandbox });
  const conversation = row.conversation ?? undefined;
  const journal = createJournal({ runs, runId: id, life: row.lives, emit, conversation, signal, now });
  const found = await (life.conventions ?? findConventions(row.project_path));
  const conventions = (window: number) => tellConventions(found, window);
  const ended = new AbortController();
  const untilEnd = AbortSignal.any([signal, ended.signal]);
  let opened: Workplace | undefined;
  const others = createRunAway({
    ...{ away: deps.away, runId: id, projectPath: row.project_path, height: held.sandbox },
    ...{ deadlineMs: checkDeadlineMs, signal: untilEnd, workplace: () => opened },
  });
  const sessions = createAgentSessions({
    ...{ engine, bind, runId: id, runs, standIn, held, projectPath: row.project_path, serving, conventions },
    away: others.sessions,
  });
  const caller = createCaller({ sessions, journal, runs, run: row, agents, serving, settings, signal, onSay, spending });
  const firstAsked = (phase: Placed, cwd: string): Expected[] =>
    kindOf(kinds, phase).firstAsked?.(phase, { pipeline, cwd }) ?? [];
  /** Whether a phase is bound to be skipped, as far as that is known before it comes. */
  const isSkipped = (phase: Placed) => {
    if (phase.condition === "hasFrontendTasks") return false;
    const models = comparedModels(phase, loaded, kindOf(kinds, phase), serving);
    return whySkipped(phase.condition, { models, tasks: [], planned: inputs.plan }) !== undefined;
  };
  const asked = pipeline.pipeline.filter((phase) => !isSkipped(phase));
  const workplace = await openRunWorkplace({
    git,
    runs,
    row,
    pipeline,
    kinds,
    settings,
    folder,
    looked,
    signal: untilEnd,
    onPlace: (cwd) => caller.expect(asked.slice(0, 1).flatMap((phase) => firstAsked(phase, cwd))),
  });
  opened = workplace;
  const record = recorders(journal);
  if (row.lives === 1) {
    const isOver = (each: RunRow) =>
      each.id !== id && each.project_path === row.project_path && statusOf(each, now()) !== "running";
    const earlier = runs
      .list(MOST_EARLIER)
      .filter(isOver)
      .map((each) => join(runsFolder, each.id));
    const written = [...placeOf(pipeline.pipeline, kinds).documents, settings.summaryFileName];
    const place = { projectPath: row.project_path, docDir: settings.docDir, folder };
    clearEarlier({ ...place, earlier, written }).forEach(record.note);
  }
  // In a later life the run's own documents are among the changes.
  if (row.lives === 1 && workplace.kind === "branch" && workplace.repo.dirty && workplace.repo.head !== null) {
    record.note("the checkout has uncommitted changes; the run works from the last commit and does not see them");
  }
  const checks = createChecks({
    journal,
    configured: pipeline.checks,
    findChecks,
    signal: untilEnd,
    deadlineMs: checkDeadlineMs,
    wrap,
    redactor,
    standIn,
    elsewhere: others.elsewhere,
    env: (cwd) => environmentIn(workplace, cwd, env),
    now,
  });
  return {
    runId: id,
    pipeline,
    agents,
    settings,
    journal,
    caller,
    checks,
    documents,
    workplace,
    about: { issue: row.issue, decisions: inputs.decisions },
    planned: inputs.plan,
    signal,
    tell,
    serving,
    served: (phase, stream = null) => servedLine(runs.calls(id, phase, stream), inputs.models),
    firstAskedAfter: (phase) =>
      asked
        .slice(asked.indexOf(phase) + 1)
        .filter((later) => later.id === later.phase)
        .flatMap((later) => firstAsked(later, workplace.workspace.cwd)),
    ...record,
    async end() {
      ended.abort();
      await checks.settled();
      if (workplace.kind === "in place") return;
      await Promise.allSettled([workplace.installed, ...[...workplace.foreseen.values()].map(({ made }) => made)]);
    },
  };
}
