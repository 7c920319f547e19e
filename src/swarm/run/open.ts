import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { companionName } from "../../git/companion-name.ts";
import type { Repo } from "../../git/repository.ts";
import { createSandboxProfiles } from "../../git/sandbox-profiles.ts";
import { stricterSafety } from "../../home/modes.ts";
import { type Conventions, findConventions, formatConventions } from "../../project/conventions.ts";
import { rulesSection } from "../../protocol/rules.ts";
import type { RunRow, Runs } from "../../store/runs.ts";
import { createAgentSessions } from "../agents/agent-sessions.ts";
import { createCaller, type UpcomingCall } from "../agents/caller.ts";
import { servingAmong } from "../agents/models.ts";
import { repositoriesPrompt } from "../agents/prompts.ts";
import { servedLine } from "../agents/served.ts";
import { runCheck } from "../checks/run-check.ts";
import type { RunContext } from "../context/context.ts";
import { openDocuments } from "../context/documents.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { whySkipped } from "../pipeline/conditions.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import { kindOf } from "../pipeline/kind.ts";
import { comparedModels } from "../pipeline/named-models.ts";
import type { Placed } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { createJournal, recorders } from "../steps/journal.ts";
import { environmentIn, type InspectedProject, type Workplace } from "../workspace/workspace.ts";
import type { SwarmDeps } from "./deps.ts";
import { clearEarlier } from "./earlier-documents.ts";
import { openParts } from "./parts.ts";
import { createRunOnWorkers } from "./remote-folder.ts";
import { openRunWorkplace, placeOf } from "./workplace.ts";

/** Whether the user has changed anything. Documents of earlier runs do not count, so it checks again after they were removed. */
async function isDirty({ git, root, status }: Repo, cleared: number): Promise<boolean> {
  const { dirty } = await status();
  if (!dirty || cleared === 0) return dirty;
  const { code, stdout } = await git.run(root, ["status", "--porcelain", "--untracked-files=normal"]);
  return code !== 0 || stdout.trim() !== "";
}

/** What one life of a run starts with; every resume begins a new life. */
export interface OpenedRun {
  row: RunRow;
  loaded: LoadedPipeline;
  inputs: Inputs;
  settings: RunSettings;
  inspected?: InspectedProject | undefined;
  conventions?: Promise<Conventions> | undefined;
  signal: AbortSignal;
  tell: RunContext["tell"];
}

export interface OpenRunDeps extends Omit<SwarmDeps, "store" | "shipped"> {
  runs: Runs;
  /** The ids of the runs in progress. */
  atWork: ReadonlySet<string>;
  kinds: readonly PhaseKind[];
  env: NodeJS.ProcessEnv;
  now: () => Date;
}

/** How many of the latest runs may have left documents to remove. */
const MOST_EARLIER = 200;

/** Opens what a run's phases work with: its folder, journal, workplace and agents. */
export async function openRun(deps: OpenRunDeps, life: OpenedRun): Promise<RunContext> {
  const { engine, emit, bind, git, wrap, redactor, runsFolder, onSay, spending, runs, kinds, env, now } = deps;
  const { checkDeadlineMs = 600_000 } = deps;
  const { row, loaded, inputs, settings, inspected, signal, tell } = life;
  const { id } = row;
  const { pipeline, agents } = loaded;
  const serving = servingAmong(inputs.models);
  const folder = join(runsFolder, id);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const documents = openDocuments({ projectPath: row.project_path, docDir: settings.docDir, folder, now });
  const safety = [row.project_path, ...inputs.with.map(({ projectPath }) => projectPath)]
    .map((path) => deps.safetyOf?.(path) ?? {})
    .reduce(stricterSafety);
  const others = inputs.with.map(({ projectPath }, index) => ({
    projectPath,
    worktree: join(folder, "worktrees", companionName(projectPath, index + 1)),
  }));
  const sandboxProfile = createSandboxProfiles({ projectPath: row.project_path, folder, height: safety.sandbox, others });
  const conversation = row.conversation ?? undefined;
  const journal = createJournal({ runs, runId: id, life: row.lives, emit, conversation, signal, now });
  const record = recorders(journal);
  const conventions = await openConventions(deps, life, others);
  const ended = new AbortController();
  const untilEnd = AbortSignal.any([signal, ended.signal]);
  let opened: Workplace | undefined;
  const onWorkers = createRunOnWorkers({
    // A job on another host brings only one repository along.
    ...{
      remoteWork: others.length === 0 ? deps.remoteWork : undefined,
      runId: id,
      projectPath: row.project_path,
      height: safety.sandbox,
    },
    ...{ deadlineMs: checkDeadlineMs, signal: untilEnd, workplace: () => opened },
  });
  const sessions = createAgentSessions({
    ...{ engine, bind, runId: id, runs, sandboxProfile, safety, projectPath: row.project_path, serving, conventions },
    remoteWork: onWorkers.sessions,
    otherWorktrees: others.map(({ worktree }) => worktree),
  });
  let onAsked = () => {};
  const asked = new Promise<void>((done) => {
    onAsked = done;
  });
  const caller = createCaller({
    ...{ sessions, journal, runs, run: row, agents, serving, settings, signal, onSay, spending, note: record.note },
    onAsked,
    ...(others.length > 0 && {
      preamble: (cwd) => repositoriesPrompt({ projectPath: row.project_path, worktree: cwd }, others),
    }),
  });
  const firstAsked = (phase: Placed, cwd: string): UpcomingCall[] =>
    kindOf(kinds, phase).firstAsked?.(phase, { pipeline, cwd }) ?? [];
  /** Whether a phase is already known to be skipped. */
  const isSkipped = (phase: Placed) => {
    if (phase.condition === "hasFrontendTasks") return false;
    const models = comparedModels(phase, loaded, kindOf(kinds, phase), serving);
    return whySkipped(phase.condition, { models, tasks: [], planned: inputs.plan }) !== undefined;
  };
  const phases = pipeline.pipeline.filter((phase) => !isSkipped(phase));
  const workplace = await openRunWorkplace({
    git,
    runs,
    row,
    pipeline,
    kinds,
    settings,
    inputs,
    folder,
    inspected,
    signal: untilEnd,
    onPlace: (cwd) => caller.prepareSessions(phases.slice(0, 1).flatMap((phase) => firstAsked(phase, cwd))),
  });
  opened = workplace;
  if (row.lives === 1) await clearBefore(deps, life, workplace, record.note);
  const { parts, checks, prepare } = openParts({
    ...{ deps, workplace, projectPath: row.project_path, inputs, configured: pipeline.checks, note: record.note, journal },
    ...{ sandboxProfile, deadlineMs: checkDeadlineMs, signal: untilEnd, elsewhere: onWorkers.elsewhere },
  });
  return {
    runId: id,
    pipeline,
    agents,
    settings,
    journal,
    caller,
    checks,
    parts,
    documents,
    workplace,
    about: { issue: row.issue, decisions: inputs.decisions },
    requireChecks: inputs.requireChecks,
    planned: inputs.plan,
    signal,
    tell,
    serving,
    served: (phase, stream = null) => servedLine(runs.calls(id, phase, stream), inputs.models),
    firstAskedAfter: (phase) =>
      phases
        .slice(phases.indexOf(phase) + 1)
        .filter((later) => later.id === later.phase)
        .flatMap((later) => firstAsked(later, workplace.workspace.cwd)),
    ...record,
    asked,
    prepare,
    async runInTree(command, cwd) {
      const running = { wrap, redactor, sandboxProfile, deadlineMs: checkDeadlineMs, signal };
      const envIn = (folder: string) => environmentIn(workplace, folder, env);
      const { end } = await runCheck({ name: command, command, cwd: "." }, cwd, { ...running, env: envIn });
      return { ...end, output: redactor.clean(end.output) };
    },
    async end() {
      ended.abort();
      await checks.settled();
      if (workplace.kind === "in place") return;
      const installed = [workplace, ...workplace.companions.map((each) => each.workplace)].map((place) => place.installed);
      await Promise.allSettled([...installed, ...[...workplace.preparedStreams.values()].map(({ made }) => made)]);
    },
  };
}

/** The user's rules and every repository's conventions, as far as they fit into a model's window. */
async function openConventions(
  { rulesFor }: OpenRunDeps,
  { row: { project_path: path }, conventions }: OpenedRun,
  others: readonly { projectPath: string }[],
): Promise<(window: number) => string> {
  const projects = others.map(({ projectPath }) => findConventions(projectPath));
  const found = await Promise.all([conventions ?? findConventions(path), ...projects]);
  return (window) =>
    [rulesSection(rulesFor?.(path) ?? ""), ...found.map((each) => formatConventions(each, window))].filter(Boolean).join("\n\n");
}

/** Removes what earlier runs left in the checkout, before a run's first life, and notes what the run will not see there. */
async function clearBefore(
  { runs, runsFolder, atWork, kinds }: OpenRunDeps,
  { row, loaded: { pipeline }, settings }: OpenedRun,
  workplace: Workplace,
  note: (text: string) => void,
): Promise<void> {
  const isOver = (each: RunRow) => each.id !== row.id && each.project_path === row.project_path && !atWork.has(each.id);
  const earlier = runs
    .list(MOST_EARLIER)
    .filter(isOver)
    .map((each) => join(runsFolder, each.id));
  const written = [...placeOf(pipeline.pipeline, kinds).documents, settings.summaryFileName];
  const place = { projectPath: row.project_path, docDir: settings.docDir, folder: join(runsFolder, row.id) };
  const { notes, cleared } = clearEarlier({ ...place, earlier, written });
  notes.forEach(note);
  // When resumed, the run's own documents are among the changes.
  if (workplace.kind === "branch" && workplace.repo.head !== null && (await isDirty(workplace.repo, cleared)))
    note("the checkout has uncommitted changes; the run works from the last commit and does not see them");
}
