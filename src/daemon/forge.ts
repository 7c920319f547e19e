import { createForgeFinder } from "../forge/find.ts";
import { createFollower } from "../forge/followed.ts";
import { createFreshBase } from "../forge/fresh-base.ts";
import { createIssueWork, type WatchedRun } from "../forge/issue-work.ts";
import type { OwnedWork } from "../forge/proposal.ts";
import { createPulls, type Pulls } from "../forge/pulls.ts";
import { createPusher } from "../forge/push.ts";
import { createPublishQuestion } from "../forge/question.ts";
import { createRounds, type RoundResult, type WatchNews } from "../forge/rounds.ts";
import { createWatchTurns } from "../forge/watch-turns.ts";
import { createWatches, type Watches } from "../forge/watches.ts";
import type { LiveConfig } from "../home/live-config.ts";
import type { Paths } from "../home/paths.ts";
import { conflict, missing } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { oneLine } from "../lib/quoted.ts";
import { createTurnTaking } from "../lib/turn-taking.ts";
import type { Event } from "../protocol/events.ts";
import type { Run } from "../protocol/runs.ts";
import type { Squads } from "../squads/squads.ts";
import { createPullRows } from "../store/pulls.ts";
import { createSquadStore } from "../store/squads.ts";
import { createWatchRows } from "../store/watches.ts";
import { readRunSettings } from "../swarm/pipeline/settings.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import { currentEvidence } from "../swarm/steps/current-evidence.ts";
import type { Closers } from "./closers.ts";
import type { Core } from "./core.ts";

export interface ForgePartsDeps {
  core: Core;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  settings: LiveConfig;
  squads: Squads;
  swarm: Swarm;
  closers: Closers;
  tell: (news: WatchNews) => void;
}

/** Pull requests from the work of runs and tasks, and watched repositories. */
export function buildForge(deps: ForgePartsDeps): { rooms: { pulls: Pulls; watches: Watches }; start: () => void } {
  const { core, env, paths, settings, squads, swarm, closers, tell } = deps;
  const { store, hub, git, programs, redactor, approvals, log } = core;
  const teams = createSquadStore(store);
  const clean = redactor.clean;
  const finder = createForgeFinder({ git, env, redactor, config: settings.current, gh: () => programs.find("gh") });
  const rows = createWatchRows(store);
  const pullRows = createPullRows(store);
  const pusher = createPusher({ git, clean, scratch: paths.scratch });
  const pollMs = () => settings.current().github.pollMs;
  const isWatched = (owner: string) => rows.ofRun(owner).length > 0;
  const pulls = createPulls({
    ...{ isUnattended: isWatched, retryMs: pollMs },
    ...{ store, git, log, clean, finder, emit: hub.emit, rows: pullRows },
    pusher,
    ask: createPublishQuestion({
      approvals,
      config: settings.current,
      safetyOf: (projectPath) => teams.findByPath(projectPath)?.safety ?? {},
      isWatched,
    }),
    workOf: ({ kind, id }, part) => (kind === "run" ? workOfRun(swarm, id, part) : workOfTask(squads, id, part)),
    projectsOf: ({ kind, id }) => (kind === "run" ? projectsOf(runIn(swarm, id)) : placesOfTask(squads, id).map(pathOf)),
  });
  closers.add(pulls.close);
  closers.add(hub.subscribe(pulls.heard));
  closers.add(hub.subscribe((event) => announcePull(event, tell)));
  const stopping = new AbortController();
  const freshBase = createFreshBase({ git, finder, pusher });
  const issueWork = createIssueWork({
    ...{ rows, pulls, pullRows, newRun: () => newId("r") },
    findRun: (id) => watchedRun(swarm, id),
    freshBase: (projectPath, forge) => freshBase(projectPath, forge, stopping.signal),
    async startRun({ id, projectPath, squad, issue, base }) {
      const decisions = squad === null ? undefined : squads.projectOf(squad)?.decisions;
      const team = squad === null ? {} : { squad, decisions };
      const how = { settings: readRunSettings(env), unattended: true, reopenable: true };
      await swarm.start({ id, projectPath, issue, base, ...how, ...team });
    },
  });
  const rounds = createRounds({
    ...{ rows, pulls, pullRows, git, clean, tell, resultOf: (run, number, part) => roundOf(swarm, run, number, part) },
    reopen: async (run, round) => void (await swarm.reopen(run, round)),
  });
  const inTurn = createTurnTaking();
  const watches = createWatches({
    ...{ rows, pullRows, finder, inTurn, log, squadProject: (slug) => squads.projectOf(slug)?.projectPath },
    turns: createWatchTurns({ rows, finder, pulls, pullRows, issueWork, rounds, tell, pollMs, clean, log }),
  });
  closers.add(watches.close);
  const follower = createFollower({ ...{ pulls, pullRows, watches: rows, finder, inTurn, tell, log }, pollMs });
  closers.add(follower.close);
  closers.add(() => stopping.abort());
  closers.add(hub.subscribe(watches.heard));
  return {
    rooms: { pulls, watches },
    start() {
      pulls.start();
      watches.start();
      follower.start();
    },
  };
}

/** News that a pull request exists or failed: whoever asked for it may have done so with a button. */
function announcePull({ type, data }: Event, tell: (news: WatchNews) => void): void {
  if (type !== "pull.changed") return;
  const { id, owner, state, repo, number, url, reason, updatedAt } = data;
  if (state === "open") tell({ text: `${repo}#${number} is open: ${url}`, key: `open:${id}`, isUrgent: false });
  if (state === "failed" || state === "denied") {
    const why = oneLine(reason ?? state, 500);
    tell({ text: `No pull request for ${owner.id}: ${why}`, key: `${state}:${id}:${updatedAt}`, isUrgent: false });
  }
}

/** The state of a run's round. If its run was cancelled, or failed through a bug of ours, the round has no result. */
function roundOf(swarm: Swarm, id: string, number: number, part: number): RoundResult | "not begun" | "under way" {
  const { status, outcome, reason } = runIn(swarm, id);
  if (status === "running" || status === "interrupted") return "under way";
  const end = swarm.roundEnd(id, number);
  if (end) return { ...end, commit: end.commit === null || part === 0 ? end.commit : (end.others[part - 1] ?? null) };
  if (status === "done") return "not begun";
  return { reply: "", commit: null, refused: `the run ended as ${outcome ?? status}${reason === null ? "" : `: ${reason}`}` };
}

function watchedRun(swarm: Swarm, id: string): WatchedRun | undefined {
  const run = swarm.show(id);
  if (!run) return undefined;
  const { status, outcome, reason } = run;
  const end = `the run ended as ${outcome ?? status}${reason === null ? "" : `: ${reason}`}`;
  return { isOver: status !== "running" && status !== "interrupted", end };
}

function runIn(swarm: Swarm, id: string) {
  const run = swarm.show(id);
  if (!run) throw missing(`There is no run "${id.slice(0, 60)}". List the runs with: swarm list`);
  return run;
}

/** Its own project, then the others that it changed. */
const projectsOf = ({ projectPath, repositories }: Run): string[] => [
  projectPath,
  ...repositories.slice(0, -1).map((each) => each.projectPath),
];

/** A run's work in one of its projects. */
function workOfRun(swarm: Swarm, id: string, part: number): OwnedWork | undefined {
  const run = runIn(swarm, id);
  const { status, outcome, branch } = run;
  const { base, projectPath } = (part === 0 ? undefined : run.repositories[part - 1]) ?? run;
  if (status === "running" || status === "interrupted") return undefined;
  if (status !== "done" || outcome === null)
    throw conflict(`The run ${id} is ${status}, so there is nothing to propose. Go on with it: swarm resume ${id}`);
  if (outcome === "unchanged") throw conflict(`The run ${id} changed nothing, so there is nothing to propose.`);
  if (branch === null || base === null) throw conflict(`The run ${id} worked in place and has no branch to propose.`);
  const work = { kind: "run" as const, run, evidence: currentEvidence(run, run.tree) };
  return { work, projectPath, branch, base, isApproved: outcome === "approved" };
}

const pathOf = ({ projectPath }: { projectPath: string }) => projectPath;

/** The repositories of a task: its squad's, then the others that it changed. */
function placesOfTask(squads: Squads, id: string) {
  const { squad, evidence } = squads.task(id);
  const { projectPath } = squads.find(squad);
  const { base, treeBefore = null, treeAfter = null, others = [] } = evidence ?? {};
  return [{ projectPath, base, treeBefore, treeAfter }, ...others.filter((each) => each.treeAfter !== each.treeBefore)];
}

/** A task's work in one of its projects. */
function workOfTask(squads: Squads, id: string, part: number): OwnedWork | undefined {
  const task = squads.task(id);
  if (task.finishedAt === null) return undefined;
  const places = placesOfTask(squads, id);
  const { projectPath, base, treeBefore, treeAfter } = places[part] ?? places[0]!;
  const branch = task.evidence?.branch;
  if (branch === undefined || base === undefined)
    throw conflict(
      `The task ${id} worked in the project's folder and has no branch to propose. Have the squad's tasks work apart: io squad set ${task.squad} --isolation worktree`,
    );
  const isApproved = task.status === "done" && task.evidence?.proven === true;
  const isUnchanged = treeAfter !== null && treeAfter === treeBefore;
  return { work: { kind: "task", task }, projectPath, branch, base, isApproved, isUnchanged };
}
