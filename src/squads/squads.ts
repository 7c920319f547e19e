import type { Engine } from "../engine/port.ts";
import type { Git } from "../git/command.ts";
import { createSnapshots } from "../git/snapshots.ts";
import type { Config } from "../home/config.ts";
import { conflict, messageOf, missing } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { quoted } from "../lib/quoted.ts";
import type { Redactor } from "../lib/redact.ts";
import type { Wrap } from "../process/sandbox.ts";
import { nameConventions } from "../project/conventions.ts";
import type { Emit } from "../protocol/events.ts";
import type { Owed } from "../protocol/outbox.ts";
import type { Activity, Agent, Decision, ProjectConventions, Squad, Task, TaskStatus } from "../protocol/squads.ts";
import type { Spending } from "../protocol/usage.ts";
import type { Store } from "../store/open.ts";
import { createSessionRows } from "../store/sessions.ts";
import { createSquadStore, type SquadStore } from "../store/squads.ts";
import { createTaskActivity } from "../store/task-activity.ts";
import type { Gate } from "../tools/gate.ts";
import type { Tool } from "../tools/tool.ts";
import type { RemoteWork } from "../workers/remote/remote-work.ts";
import type { ObservedCall } from "./activity.ts";
import { createAgents } from "./agents.ts";
import { analyzeProject } from "./analyze.ts";
import { createDelegate } from "./delegate.ts";
import { createFacts } from "./facts.ts";
import { folderAt, slugOf } from "./input.ts";
import { createOtherProjects } from "./other-projects.ts";
import { formatDecisions, TOLD_DECISIONS } from "./prompt.ts";
import { createSquadSafety } from "./squad-safety.ts";
import { createTaskDiff } from "./task-diff.ts";
import { publicTask } from "./task-ending.ts";
import { createTaskNotes, type NoteTask } from "./task-notes.ts";
import { createTasks } from "./tasks.ts";
import { createTeams } from "./teams.ts";
import { createWorkFolders } from "./work-folders.ts";

export interface SquadsDeps {
  store: Store;
  /** The user's standing rules for work on a project. */
  rulesFor: (projectPath: string) => string;
  /** IO's own data folder, which contains no projects. */
  dataFolder?: string;
  /** The folder of tasks' worktrees. */
  worktreesFolder: string;
  /** Caches what was installed for tasks for later ones; undefined for no cache. */
  installedFolder: string | undefined;
  /** Keeps installers away from secrets. */
  wrap: Wrap;
  /** The environment of commands. */
  env: NodeJS.ProcessEnv;
  engine: Engine;
  gate: Gate;
  /** The tools of every agent, in its project's folder: the shell, the files, the wiki. */
  tools: readonly Tool[];
  /** Further tools that agents may use in a project. */
  moreTools?: (projectPath: string) => readonly Tool[];
  /** Reads a project's files and history. */
  git: Git;
  redactor: Redactor;
  config: () => Config;
  /** Records and permits what agents spend. */
  spending: Spending;
  emit: Emit;
  log: Log;
  /** Stores a message about a task's end for delivery. */
  owe: (owed: Owed) => void;
  /** Lets tasks with a worktree run on other hosts; without it all run here. */
  remoteWork?: Pick<RemoteWork, "at">;
}

/** A squad with its people, its latest decisions and its latest tasks. */
export interface SquadView extends Squad {
  agents: Agent[];
  decisions: Decision[];
  tasks: Task[];
}

/** The lasting teams and what they work on. */
export function createSquads(deps: SquadsDeps) {
  const { store: database, engine, gate, tools, git, redactor, config, spending, emit, log, owe } = deps;
  const store = createSquadStore(database);
  const activity = createTaskActivity(database);
  const sessions = createSessionRows(database);
  const facts = createFacts({ git, log, chosen: store.findByPath });
  const snapshots = createSnapshots({ git, log });
  const preparing = { wrap: deps.wrap, kept: deps.installedFolder, env: deps.env, redactor };
  const safetyOf = (projectPath: string) => store.findByPath(projectPath)?.safety ?? {};
  const workFolders = createWorkFolders({ git, folder: deps.worktreesFolder, log, safetyOf, ...preparing });
  const note = createTaskNotes({ activity, emit, log });
  const beingDeleted = new Set<string>();

  const forgetSessions = (ids: readonly string[]) => deleteSessions(ids, { engine, store, log });
  const isBeingDeleted = (slug: string) => beingDeleted.has(slug);
  const teams = createTeams({ database, store, dataFolder: deps.dataFolder, sessions, emit, isBeingDeleted, forgetSessions });
  const agents = createAgents({
    engine,
    gate,
    store,
    sessions,
    facts,
    redactor,
    ...{ tools, moreTools: deps.moreTools, mode: () => config().mode, rulesFor: deps.rulesFor },
    logDecision: teams.logDecision,
    onCall: createCallNews({ store, emit, note }),
    ...(deps.remoteWork && { remoteWork: deps.remoteWork }),
  });
  const tasks = createTasks({
    ...{ database, store, activity, sessions, spending, agents, gate, snapshots, workFolders },
    ...{ config, emit, note, owe, log },
  });
  const otherProjects = createOtherProjects({
    ...{ git, dataFolder: deps.dataFolder },
    folderOfSquad: (slug) => store.find(slug)?.projectPath,
  });
  const delegate = createDelegate({ database, store, activity, teams, agents, tasks, note, dataFolder: deps.dataFolder });

  function findTask(id: string): Task {
    const task = store.findTask(id);
    if (!task) throw missing(`There is no task with the id ${quoted(id, 100)}.`);
    return publicTask(task);
  }

  return {
    ...teams,
    ...createSquadSafety({ store, teams, facts, dataFolder: deps.dataFolder }),
    /** The slug that a model means, which may know a squad only by its name. Elsewhere only the slug itself is accepted. */
    named: (given: string): string => store.find(given)?.slug ?? store.find(slugOf(given))?.slug ?? given,
    /** What a pipeline run needs to know about a squad, if it exists. */
    projectOf(slug: string): { projectPath: string; decisions: string[] } | undefined {
      const squad = store.find(slug);
      const told = () => store.lastDecisions(slug, TOLD_DECISIONS).map((one) => formatDecisions([one]).slice("- ".length));
      return squad && { projectPath: squad.projectPath, decisions: told() };
    },
    list: (): Squad[] => store.list(),
    agents: (slug: string): Agent[] => store.agents(teams.find(slug).slug),
    /** Everything that somebody needs to resume the work. */
    recall(slug: string): SquadView {
      const squad = teams.find(slug);
      const latest = store.listTasks({ squad: squad.slug, limit: 20 }).map(publicTask);
      return { ...squad, agents: store.agents(squad.slug), decisions: store.lastDecisions(squad.slug, 20), tasks: latest };
    },
    factsOf: facts.of,
    /** Where the squad's project states its conventions. */
    conventions: (slug: string): Promise<ProjectConventions> => nameConventions(teams.find(slug).projectPath),
    /** Ends its tasks, then removes the squad with everything of its own; the project's files stay. */
    async delete(slug: string): Promise<Squad> {
      const squad = teams.find(slug);
      beingDeleted.add(squad.slug);
      try {
        await Promise.all(store.openTasks(squad.slug).map(({ id }) => tasks.cancel(id)));
        const { sessions: left } = store.delete(squad.slug);
        facts.forget(squad.projectPath);
        emit({ type: "squad.deleted", data: { slug: squad.slug } });
        await forgetSessions(left);
        return squad;
      } finally {
        beingDeleted.delete(squad.slug);
      }
    },
    analyze: (projectPath: string, { cwd, signal }: { cwd?: string; signal?: AbortSignal } = {}) => {
      const folder = folderAt(projectPath, cwd, deps.dataFolder);
      return analyzeProject(git, folder, { ...(signal && { signal }), chosen: store.findByPath(folder) });
    },

    delegate,
    /** The folders of other projects that a task of a squad is to change; refuses what cannot be changed together. */
    otherProjects: (slug: string, names: readonly string[], cwd?: string): Promise<string[]> =>
      otherProjects(teams.find(slug), names, cwd),
    task: findTask,
    /** Newest first; refuses a squad that is not there. */
    tasks: ({ squad, ...filter }: { squad?: string; status?: TaskStatus; limit?: number; before?: string } = {}): Task[] =>
      store.listTasks({ ...filter, ...(squad !== undefined && { squad: teams.find(squad).slug }) }).map(publicTask),
    openTasks: (slug: string): Task[] => store.openTasks(slug).map(publicTask),
    activity: (id: string, page?: { after?: number; limit?: number }): Activity[] => activity.of(findTask(id).id, page),
    diff: createTaskDiff({ git, findTask, findSquad: teams.find }),
    lastActivity: (id: string, count: number): Activity[] => activity.last(id, count),
    async cancel(id: string): Promise<Task> {
      const { status } = findTask(id);
      const ended = await tasks.cancel(id);
      if (!ended) throw conflict(`This task is ${status} already.`);
      return ended;
    },
    /** The tasks that a message started. */
    tasksOf: (messageId: string): string[] => activity.tasksOf(messageId),
    counts() {
      const { all, queued, running } = store.taskCounts();
      return { squads: store.list().length, tasks: all, tasksQueued: queued, tasksRunning: running };
    },

    /** Resumes what an earlier life left. */
    start(): void {
      tasks.start();
      void forgetSessions(store.leftoverSessions());
    },
    stopAll: () => tasks.stopAll(),
    close: () => tasks.close(),
  };
}
export type Squads = ReturnType<typeof createSquads>;

/** Announces the calls of tasks; pieces of output are not recorded as the task's activity. */
function createCallNews({ store, emit, note }: Pick<SquadsDeps, "emit"> & { store: SquadStore; note: NoteTask }) {
  return ({ taskId, summary, ...call }: ObservedCall): void => {
    const task = store.findTask(taskId);
    if (!task) return;
    if (call.state === "running") {
      const { id, squad, agent, origin } = task;
      const data = { ...call, args: summary, id, squad, agent, kind: "tool" as const, summary };
      emit({ type: "task.progress", conversation: origin?.conversation, data });
    } else note(publicTask(task), "tool", summary, call);
  };
}

/** A session that cannot be deleted now is deleted at the next start. */
async function deleteSessions(
  ids: readonly string[],
  { engine, store, log }: { engine: Engine; store: SquadStore; log: Log },
): Promise<void> {
  for (const id of ids) {
    try {
      await engine.deleteSession(id);
      store.forgetSession(id);
    } catch (error) {
      log.warn("a session is still on disk; it is deleted at the next start", { session: id, error: messageOf(error) });
    }
  }
}
