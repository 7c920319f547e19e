import { refuseDataFolder } from "../home/data-folder.ts";
import { conflict } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { isFolder } from "../lib/is-folder.ts";
import type { Agent, Origin, Squad, Task } from "../protocol/squads.ts";
import type { Store } from "../store/open.ts";
import type { SquadStore, TaskRecord } from "../store/squads.ts";
import type { TaskActivity } from "../store/task-activity.ts";
import type { Agents } from "./agents.ts";
import { chooseAgent } from "./choose.ts";
import { isSameTask, MAX, required } from "./input.ts";
import { folderGone } from "./missing.ts";
import { publicTask } from "./task-ending.ts";
import type { NoteTask } from "./task-notes.ts";
import type { Tasks } from "./tasks.ts";
import type { Teams } from "./teams.ts";

export interface DelegateDeps {
  database: Store;
  store: SquadStore;
  activity: TaskActivity;
  teams: Pick<Teams, "find" | "findAgent">;
  agents: Agents;
  tasks: Pick<Tasks, "isEnding" | "queued">;
  note: NoteTask;
  dataFolder: string | undefined;
}

export interface NewTask {
  task: string;
  /** The character who is to do it; without it the best fit is chosen. */
  agent?: string | undefined;
  /** The folders of other projects that it is to change too. */
  with?: readonly string[] | undefined;
  origin: Origin;
}

/** Gives a task to an agent. It is on disk when this returns; a request for the same open task joins it. */
export function createDelegate({ database, store, activity, teams, agents, tasks, note, dataFolder }: DelegateDeps) {
  /** The same task, if somebody already asked for it and it is still open. */
  function findOpenDuplicate(
    description: string,
    others: readonly string[],
    wanted: Agent | undefined,
    open: ReturnType<SquadStore["openHeads"]>,
  ) {
    const isDuplicate = (one: (typeof open)[number]) =>
      isSameTask(one.description, description) &&
      one.with.join("\n") === others.join("\n") &&
      (!wanted || one.agent === wanted.characterName) &&
      !tasks.isEnding(one.id);
    const head = open.find(isDuplicate);
    return head && store.findTask(head.id);
  }

  function insert(squad: Squad, agent: Agent, description: string, why: string, asked: Omit<NewTask, "task">): TaskRecord {
    const { with: others, origin } = asked;
    const { model, reason } = agents.modelFor(agent, description);
    return database.transaction(() => {
      const made = store.insertTask({
        id: newId("t"),
        squad: squad.slug,
        agent: agent.characterName,
        description,
        with: others,
        origin,
        reason: `${why}; ${reason}`,
        model,
      });
      activity.ask(made.id, origin);
      return made;
    });
  }

  return (slug: string, { task: text, ...asked }: NewTask): { task: Task; joined: boolean } => {
    const { agent: wanted, with: others = [], origin } = asked;
    const squad = teams.find(slug);
    const description = required("The task", text, MAX.task, "Put long material in a file of the project and name the file.");
    if (!isFolder(squad.projectPath)) throw conflict(folderGone(squad));
    if (store.agents(squad.slug, 1).length === 0)
      throw conflict(
        `The squad "${squad.slug}" has no agents yet. Add one first (squad_add_agent: a role and a charter); squad_analyze suggests a roster.`,
      );
    if (dataFolder !== undefined) refuseDataFolder(dataFolder, squad.projectPath);
    const chosen = wanted === undefined ? undefined : teams.findAgent(squad, wanted);
    const open = store.openHeads(squad.slug);
    const duplicate = findOpenDuplicate(description, others, chosen, open);
    if (duplicate) {
      activity.ask(duplicate.id, origin);
      note(publicTask(duplicate), "joined", "asked for once more while it was under way: joined, not doubled");
      return { task: publicTask(duplicate), joined: true };
    }
    const busy = new Set(open.map((one) => one.agent));
    const { agent, reason } = chosen
      ? { agent: chosen, reason: `${chosen.characterName} was asked for by name` }
      : chooseAgent(description, store.agents(squad.slug), { busy })!;
    const record = insert(squad, agent, description, reason, asked);
    tasks.queued(record);
    return { task: publicTask(record), joined: false };
  };
}
