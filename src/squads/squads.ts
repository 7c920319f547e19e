import type { Engine } from "../engine/port.ts";
import { createSnapshots } from "../git/snapshots.ts";
import { type Config, nearest } from "../lib/config.ts";
import { conflict, messageOf, missing } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import type { Wrap } from "../process/sandbox.ts";
import type { Emit } from "../protocol/events.ts";
import type { Activity, Agent, Decision, ModelTier, Origin, Squad, Task, TaskStatus, UniverseName } from "../protocol/squads.ts";
import type { Store } from "../store/open.ts";
import { createSessionRows } from "../store/sessions.ts";
import { createSquadStore, type DecisionPage, squadOwner } from "../store/squads.ts";
import { createTaskActivity } from "../store/task-activity.ts";
import { createUsageLog } from "../store/usage.ts";
import type { Gate } from "../tools/gate.ts";
import type { Tool } from "../tools/tool.ts";
import { createAgents } from "./agents.ts";
import { analyzeProject } from "./analyze.ts";
import { calledBy } from "./called.ts";
import { chooseAgent } from "./choose.ts";
import { createFacts } from "./facts.ts";
import { alike, checkedSlug, folderAt, freeSlug, isFolder, limited, required, slugOf } from "./input.ts";
import { TOLD_DECISIONS, tellDecisions } from "./prompt.ts";
import { createTasks, publicTask, type Report } from "./tasks.ts";
import { nextCharacter, pickUniverse } from "./universes.ts";

export interface SquadsDeps {
  store: Store;
  engine: Engine;
  gate: Gate;
  /** What every agent may use, in its project's folder: the shell, the files, the wiki. */
  tools: readonly Tool[];
  /** Keeps git from IO's secrets as the shell is kept from them. */
  wrap: Wrap;
  /** The environment for git. */
  env: () => NodeJS.ProcessEnv;
  redactor: Redactor;
  config: () => Config;
  emit: Emit;
  log: Log;
  /** Tells somebody who asked that a task has ended. */
  deliver: (report: Report) => void;
}

export interface NewSquad {
  name: string;
  projectPath: string;
  slug?: string | undefined;
  universe?: UniverseName | undefined;
  /** Where a relative path stands; without it only whole paths are taken. */
  cwd?: string | undefined;
}

export interface NewAgent {
  roleTitle: string;
  charter: string;
  modelTier?: ModelTier | undefined;
}

/** A squad with its people, its latest decisions and its latest tasks. */
export interface SquadView extends Squad {
  agents: Agent[];
  decisions: Decision[];
  tasks: Task[];
}

const MAX = { name: 100, roleTitle: 100, charter: 8_000, decision: 2_000, context: 4_000, task: 20_000, agents: 100 };

/** The lasting teams and what they work on. */
export function createSquads(parts: SquadsDeps) {
  const { store: database, engine, gate, tools, wrap, env, redactor, config, emit, log, deliver } = parts;
  const store = createSquadStore(database);
  const activity = createTaskActivity(database);
  const sessions = createSessionRows(database);
  const usage = createUsageLog(database);
  const facts = createFacts({ log });
  const snapshots = createSnapshots({ wrap, env, log });
  const leaving = new Set<string>();

  const logDecision = (slug: string, given: { decision: string; context?: string | undefined; author?: string | undefined }) => {
    const decision = required("The decision", given.decision, MAX.decision);
    const context =
      given.context === undefined ? undefined : limited("The context", given.context.trim(), MAX.context) || undefined;
    const logged = store.addDecision(find(slug).slug, { decision, context, author: given.author });
    emit({ type: "decision.logged", data: { ...logged } });
    return logged;
  };
  const agents = createAgents({
    engine,
    gate,
    store,
    sessions,
    facts,
    redactor,
    tools,
    logDecision,
    onCall: ({ taskId, tool, state, summary }) => {
      const task = store.findTask(taskId);
      if (task) runner.note(publicTask(task), "tool", summary, { tool, state });
    },
  });
  const runner = createTasks({
    database,
    store,
    activity,
    sessions,
    usage,
    agents,
    gate,
    snapshots,
    config,
    emit,
    log,
    deliver,
  });

  function find(slug: string): Squad {
    const squad = store.find(slug);
    if (squad && !leaving.has(squad.slug)) return squad;
    const known = store.list().map((one) => one.slug);
    const near = nearest(slug.slice(0, 100), known);
    const help =
      known.length === 0
        ? "There are none yet."
        : near
          ? `Did you mean "${near}"?`
          : `There are: ${known.slice(0, 20).join(", ")}.`;
    throw missing(`There is no squad called "${slug.slice(0, 100)}". ${help}`);
  }

  function findAgent(squad: Squad, characterName: string): Agent {
    const agent = store.findAgent(squad.slug, characterName.trim());
    if (agent) return agent;
    const all = store.agents(squad.slug);
    const meant = calledBy(characterName, all);
    if (meant) return meant;
    const names = all.map((one) => one.characterName);
    const help =
      names.length === 0
        ? "It has no agents yet."
        : `Its agents: ${all.map((one) => `${one.characterName} (${one.roleTitle})`).join(", ")}.`;
    throw missing(`The squad "${squad.slug}" has no agent called "${characterName.slice(0, 100)}". ${help}`);
  }

  function findTask(id: string): Task {
    const task = store.findTask(id);
    if (!task) throw missing(`There is no task with the id "${id.slice(0, 100)}".`);
    return publicTask(task);
  }

  async function forgetSessions(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      try {
        await engine.deleteSession(id);
        store.forgetSession(id);
      } catch (error) {
        log.warn("a session is still on disk; it is deleted at the next start", { session: id, error: messageOf(error) });
      }
    }
  }

  return {
    create({ name, projectPath, slug, universe, cwd }: NewSquad): { squad: Squad; isNew: boolean } {
      const title = required("The name", name, MAX.name);
      const folder = folderAt(projectPath, cwd);
      const existing = store.findByPath(folder);
      if (existing && leaving.has(existing.slug))
        throw conflict(`The squad "${existing.slug}" of ${folder} is just being deleted. Try again in a moment.`);
      if (existing) {
        if (slug === undefined || slug === existing.slug) return { squad: existing, isNew: false };
        throw conflict(`The squad "${existing.slug}" already works on ${folder}; a folder has one squad. Use that slug.`);
      }
      const chosen =
        slug === undefined ? freeSlug(slugOf(title) || "squad", (one) => store.find(one) !== undefined) : checkedSlug(slug);
      const squad = store.create({
        slug: chosen,
        name: title,
        projectPath: folder,
        universe: universe ?? pickUniverse(store.list().map((one) => one.universe)),
      });
      emit({ type: "squad.created", data: { ...squad } });
      return { squad, isNew: true };
    },
    find,
    /** The slug that a model means, which may know a squad by its name. Elsewhere only the slug itself will do. */
    named: (given: string): string => store.find(given)?.slug ?? store.find(slugOf(given))?.slug ?? given,
    /** What a pipeline run for a squad has to know of it, if there is such a squad. */
    projectOf(slug: string): { projectPath: string; decisions: string[] } | undefined {
      const squad = store.find(slug);
      const told = () => store.lastDecisions(slug, TOLD_DECISIONS).map((one) => tellDecisions([one]).slice("- ".length));
      return squad && { projectPath: squad.projectPath, decisions: told() };
    },
    list: (): Squad[] => store.list(),
    /** Everything somebody needs who takes up the work again. */
    recall(slug: string): SquadView {
      const squad = find(slug);
      const tasks = store.listTasks({ squad: squad.slug, limit: 20 }).map(publicTask);
      return { ...squad, agents: store.agents(squad.slug), decisions: store.lastDecisions(squad.slug, 20), tasks };
    },
    /** Ends its tasks, then takes the squad away with all that is its own; the project's files stay. */
    async delete(slug: string): Promise<Squad> {
      const squad = find(slug);
      leaving.add(squad.slug);
      try {
        await Promise.all(store.openTasks(squad.slug).map(({ id }) => runner.cancel(id)));
        const { sessions: left } = store.delete(squad.slug);
        facts.forget(squad.projectPath);
        emit({ type: "squad.deleted", data: { slug: squad.slug } });
        await forgetSessions(left);
        return squad;
      } finally {
        leaving.delete(squad.slug);
      }
    },

    agents: (slug: string): Agent[] => store.agents(find(slug).slug),
    addAgent(slug: string, { roleTitle, charter, modelTier = "medium" }: NewAgent): Agent {
      const squad = find(slug);
      const role = required("The role title", roleTitle, MAX.roleTitle);
      const duty = required(
        "The charter",
        charter,
        MAX.charter,
        "Say what the agent answers for; details belong in the project's own documents or the wiki.",
      );
      const agent = database.transaction(() => {
        const names = store.agents(squad.slug).map((one) => one.characterName);
        if (names.length >= MAX.agents)
          throw conflict(`The squad "${squad.slug}" has ${names.length} agents already, the most a squad may have.`);
        const { name: characterName } = nextCharacter(squad.universe, names);
        return store.addAgent(squad.slug, { characterName, roleTitle: role, charter: duty, modelTier });
      });
      emit({ type: "squad.updated", data: { ...find(squad.slug) } });
      return agent;
    },
    async removeAgent(slug: string, characterName: string): Promise<Agent> {
      const squad = find(slug);
      const agent = findAgent(squad, characterName);
      const busy = store.openTasks(squad.slug).filter((task) => task.agent === agent.characterName);
      if (busy.length > 0)
        throw conflict(
          `${agent.characterName} still has ${busy.map(({ id }) => id).join(", ")} to do. Wait for it or cancel it first.`,
        );
      const left = database.transaction(() => {
        store.removeAgent(squad.slug, agent.characterName);
        return sessions.remove(squadOwner(squad.slug, agent.characterName));
      });
      emit({ type: "squad.updated", data: { ...find(squad.slug) } });
      await forgetSessions(left);
      return agent;
    },

    logDecision,
    /** Newest first, before the one with this id. */
    decisions: (slug: string, { text, ...page }: DecisionPage & { text?: string | undefined } = {}): Decision[] => {
      const squad = find(slug);
      return text ? store.searchDecisions(squad.slug, text, page) : store.listDecisions(squad.slug, page);
    },
    analyze: (projectPath: string, { cwd, signal }: { cwd?: string; signal?: AbortSignal } = {}) =>
      analyzeProject(folderAt(projectPath, cwd), signal ? { signal } : {}),

    /** On disk when this returns; the same task asked for again while it is open is joined. */
    delegate(slug: string, { task: text, agent: wanted, origin }: { task: string; agent?: string | undefined; origin: Origin }) {
      const squad = find(slug);
      const description = required("The task", text, MAX.task, "Put long material in a file of the project and name the file.");
      if (store.agents(squad.slug, 1).length === 0)
        throw conflict(
          `The squad "${squad.slug}" has no agents yet. Add one first (squad_add_agent: a role and a charter); squad_analyze suggests a roster.`,
        );
      if (!isFolder(squad.projectPath))
        throw conflict(`The project's folder ${squad.projectPath} is not there any more. Put it back, or delete the squad.`);
      const named = wanted === undefined ? undefined : findAgent(squad, wanted);
      const open = store.openHeads(squad.slug);
      const head = open.find(
        (one) => alike(one.description, description) && (!named || one.agent === named.characterName) && !runner.isEnding(one.id),
      );
      const same = head && store.findTask(head.id);
      if (same) {
        activity.ask(same.id, origin);
        runner.note(publicTask(same), "joined", "asked for once more while it was under way: joined, not doubled");
        return { task: publicTask(same), joined: true };
      }
      const busy = new Set(open.map((one) => one.agent));
      const choice = named
        ? { agent: named, reason: `${named.characterName} was asked for by name` }
        : chooseAgent(description, store.agents(squad.slug), { busy })!;
      const { model, reason: why } = agents.modelFor(choice.agent, description);
      const record = database.transaction(() => {
        const made = store.insertTask({
          id: newId("t"),
          squad: squad.slug,
          agent: choice.agent.characterName,
          description,
          origin,
          reason: `${choice.reason}; ${why}`,
          model,
        });
        activity.ask(made.id, origin);
        return made;
      });
      runner.queued(record);
      return { task: publicTask(record), joined: false };
    },
    task: findTask,
    tasks: (filter: { squad?: string; status?: TaskStatus; limit?: number; before?: string } = {}): Task[] =>
      store.listTasks(filter).map(publicTask),
    openTasks: (slug: string): Task[] => store.openTasks(slug).map(publicTask),
    activity: (id: string, page?: { after?: number; limit?: number }): Activity[] => activity.of(findTask(id).id, page),
    lastActivity: (id: string, count: number): Activity[] => activity.last(id, count),
    async cancel(id: string): Promise<Task> {
      const { status } = findTask(id);
      const ended = await runner.cancel(id);
      if (!ended) throw conflict(`This task is ${status} already.`);
      return ended;
    },
    /** The tasks that a message set going. */
    tasksOf: (messageId: string): string[] => activity.tasksOf(messageId),
    originOf: (taskId: string): Origin | undefined => store.findTask(taskId)?.origin ?? undefined,
    counts() {
      const { all, queued, running } = store.taskCounts();
      return { squads: store.list().length, tasks: all, tasksQueued: queued, tasksRunning: running };
    },

    /** Takes up what an earlier life left, and goes on. */
    start(): void {
      runner.start();
      void forgetSessions(store.leftoverSessions());
    },
    stopAll: () => runner.stopAll(),
    close: () => runner.close(),
  };
}
export type Squads = ReturnType<typeof createSquads>;
