import { UserError } from "../../lib/errors.ts";
import type { RunSummary } from "../../protocol/runs.ts";
import { type Stateful, showState } from "../../protocol/shown-state.ts";
import type { Activity, Agent, Squad, Task } from "../../protocol/squads.ts";
import { brief, type Command, columns, time } from "./command.ts";

const MOST = 20;

/** Commands about teams and their work. */
export const workCommands: readonly Command[] = [
  {
    name: "squads",
    help: "the squads, their projects and what they do",
    async run({ client }) {
      const { items } = await client.request<{ items: Squad[] }>("GET", "/api/squads");
      const rows = items.map(({ slug, status, projectPath }) => [slug, status, projectPath]);
      return columns(rows) || "There are no squads yet: ask for one, or use io squad create.";
    },
  },
  {
    name: "agents",
    takes: "<squad>",
    help: "the agents of a squad",
    async run({ client, args: [slug] }) {
      if (!slug) throw new UserError("/agents needs a squad; /squads lists them.");
      const { items } = await client.request<{ items: Agent[] }>("GET", `/api/squads/${encodeURIComponent(slug)}/agents`);
      const rows = items.map(({ characterName, status, roleTitle, charter }) => [
        characterName,
        status,
        roleTitle,
        brief(charter, 60),
      ]);
      return columns(rows) || `The squad "${slug}" has no agents yet.`;
    },
  },
  {
    name: "tasks",
    help: "work in the background, the latest first",
    async run({ client }) {
      const { items } = await client.request<{ items: Task[] }>("GET", "/api/tasks");
      const rows = items
        .slice(0, MOST)
        .map((task) => [task.id, stateOf({ kind: "task", task }), `${task.squad}/${task.agent}`, brief(task.description, 60)]);
      return columns(rows) || "No task was given yet.";
    },
  },
  {
    name: "activity",
    takes: "<id>",
    help: "what a task has done so far",
    async run({ client, args: [id] }) {
      if (!id) throw new UserError("/activity needs a task's id; /tasks lists them.");
      const { items } = await client.request<{ items: Activity[] }>("GET", `/api/tasks/${encodeURIComponent(id)}/activity`);
      const rows = items.map(({ createdAt, kind, summary }) => [createdAt.slice(11, 19), kind, brief(summary, 100)]);
      return columns(rows) || "Nothing was seen of it yet.";
    },
  },
  {
    name: "runs",
    help: "swarm runs, the latest first",
    async run({ client }) {
      const { items } = await client.request<{ items: RunSummary[] }>("GET", `/api/runs?limit=${MOST}`);
      const rows = items.map(({ id, createdAt, issue, ...run }) => [
        id,
        stateOf({ kind: "run", ...run }),
        time(createdAt),
        brief(issue, 60),
      ]);
      return columns(rows) || "No run was started yet.";
    },
  },
];

function stateOf(of: Stateful): string {
  const { mark, words } = showState(of);
  return `${mark} ${words}`;
}
