import { z } from "zod";
import { isFolder } from "../lib/is-folder.ts";
import { named, namedList, oneLine } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import type { Analysis } from "../protocol/analysis.ts";
import { showState } from "../protocol/shown-state.ts";
import { type Agent, ModelTier, type Origin, type Squad, type Task, UniverseName } from "../protocol/squads.ts";
import { type Tool, tool } from "../tools/tool.ts";
import { formatDecisions, formatFacts } from "./prompt.ts";
import { formatTask } from "./report.ts";
import type { Squads } from "./squads.ts";

const DEADLINE_MS = 15_000;
const ANALYSIS_MS = 120_000;
const Slug = z.string().min(1);
const ProjectPath = z.string().min(1).describe('a folder that exists; "." is where the user stands');
const TaskId = z.object({ task_id: z.string().min(1) });

/** The orchestrator's tools for squads. `originOf` finds who a call is made for. */
export function squadTools(squads: Squads, originOf: (owner: string) => Origin): Tool[] {
  return [...teamTools(squads), ...workTools(squads, originOf), ...memberTools(squads), ...taskTools(squads)];
}

function teamTools(squads: Squads): Tool[] {
  return [
    tool({
      name: "squad_create",
      description: "Create the lasting squad of a project. A folder has one squad: an existing one is returned.",
      schema: z.object({
        slug: Slug.optional(),
        name: z.string().min(1),
        project_path: ProjectPath,
        universe: UniverseName.optional(),
      }),
      kind: "effect",
      touches: ({ project_path }) => [{ path: project_path, how: "read" }],
      deadlineMs: DEADLINE_MS,
      async run({ slug, name, project_path, universe }, { cwd }) {
        const { squad, isNew } = squads.create({ slug, name, projectPath: project_path, universe, cwd });
        const made = `the squad "${squad.slug}" (${named(squad.name)}) for ${named(squad.projectPath, 500)}, named from ${squad.universe}`;
        return isNew
          ? `Created ${made}. It has no agents yet: squad_analyze suggests a roster, squad_add_agent adds each; squad_delegate takes the suggested ones into a squad that has none.`
          : `That folder already has ${made}. ${roster(squads.agents(squad.slug))}`;
      },
    }),
    tool({
      name: "squad_recall",
      description: "Everything about one squad: agents, latest decisions and tasks.",
      schema: z.object({ slug: Slug }),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      async run({ slug }) {
        const squad = squads.recall(squads.named(slug));
        const tasks = squad.tasks.map(
          (task) => `- ${task.id} ${oneLine(task.agent, 100)}, ${stateOf(task)}: ${oneLine(task.description, 100)}`,
        );
        const known = [
          roster(squad.agents),
          `Decisions, oldest first:\n${formatDecisions(squad.decisions)}`,
          `Tasks, newest first:\n${tasks.join("\n") || "None yet."}`,
        ];
        const head = `${squad.slug} (${named(squad.name)}), ${named(squad.projectPath, 500)}${missingNote(squad)}, ${squad.status}, universe ${squad.universe}`;
        return `${head}\n${asData(known.join("\n\n"))}`;
      },
    }),
    tool({
      name: "squad_status",
      description: "All squads, their agents and what is under way.",
      schema: z.object({}),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: async () => formatSquads(squads) || "There are no squads yet.",
    }),
    tool({
      name: "squad_log_decision",
      description: "Log a decision that a squad must keep to, with why as its context.",
      schema: z.object({ slug: Slug, decision: z.string().min(1), context: z.string().optional() }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      async run({ slug, decision, context }) {
        const logged = squads.logDecision(squads.named(slug), { decision, context, author: "user" });
        return `Logged for ${logged.squad} at ${logged.createdAt}.`;
      },
    }),
  ];
}

function workTools(squads: Squads, originOf: (owner: string) => Origin): Tool[] {
  return [
    tool({
      name: "squad_delegate",
      description:
        "Give a squad's agent a task to do in the background. Answers at once with its id; the result comes later as a message. Without agent the fitting one is chosen. A squad without agents first gets those that the analysis of its project suggests.",
      schema: z.object({
        slug: Slug,
        task: z.string().min(1),
        agent: z.string().min(1).optional().describe("a character's name"),
        with: z.array(z.string()).optional().describe("other projects to change too"),
      }),
      kind: "effect",
      touches: ({ with: names = [] }) =>
        names.filter((name) => squads.projectOf(name) === undefined).map((path) => ({ path, how: "write" })),
      deadlineMs: ANALYSIS_MS,
      async run({ slug: given, task, agent, with: names = [] }, { owner, cwd, signal }) {
        const slug = squads.named(given);
        const others = await squads.otherProjects(slug, names, cwd);
        const joining = await takeSuggested(squads, slug, signal);
        const { task: made, joined } = squads.delegate(slug, { task, agent, with: others, origin: originOf(owner) });
        const { id, agent: name, status, reason } = made;
        const newcomers = joining.map(({ characterName, roleTitle }) => `${characterName} (${roleTitle})`).join(", ");
        const formed = newcomers === "" ? "" : `The squad had no agents, so these joined: ${oneLine(newcomers, 1_000)}. `;
        return joined
          ? `The same task is under way already as ${id} (${oneLine(name, 100)}, ${status}); it was joined, and its result will come here too.`
          : `${formed}Task ${id} is queued for ${oneLine(name, 100)} (${oneLine(reason ?? "", 500)}). Its result comes as a message when it has ended; do not wait for it.`;
      },
    }),
    tool({
      name: "squad_analyze",
      description: "Look at a project's files: languages, frameworks, packages, tests, CI, commands, and a suggested roster.",
      schema: z.object({ project_path: ProjectPath }),
      kind: "read",
      touches: ({ project_path }) => [{ path: project_path, how: "read" }],
      deadlineMs: ANALYSIS_MS,
      run: async ({ project_path }, { cwd, signal }) => formatAnalysis(await squads.analyze(project_path, { cwd, signal })),
    }),
  ];
}

/** Adds the suggested agents to a squad that has none. */
async function takeSuggested(squads: Squads, slug: string, signal: AbortSignal): Promise<Agent[]> {
  const { projectPath } = squads.find(slug);
  if (squads.agents(slug).length > 0 || !isFolder(projectPath)) return [];
  const { roster: suggested } = await squads.analyze(projectPath, { signal });
  // Another call may have filled it meanwhile.
  return squads.agents(slug).length > 0 ? [] : suggested.map((one) => squads.addAgent(slug, one));
}

function memberTools(squads: Squads): Tool[] {
  return [
    tool({
      name: "squad_add_agent",
      description: "Add a specialist to a squad; the next character of its universe gets the role.",
      schema: z.object({
        slug: Slug,
        role_title: z.string().min(1),
        charter: z.string().min(1).describe("what it answers for"),
        model_tier: ModelTier.optional(),
      }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      async run({ slug, role_title, charter, model_tier }) {
        const agent = squads.addAgent(squads.named(slug), { roleTitle: role_title, charter, modelTier: model_tier });
        return `Added ${oneLine(agent.characterName, 100)}, ${oneLine(agent.roleTitle, 100)} (tier ${agent.modelTier}).`;
      },
    }),
    tool({
      name: "squad_agents",
      description: "The agents of a squad.",
      schema: z.object({ slug: Slug }),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: async ({ slug }) => roster(squads.agents(squads.named(slug))),
    }),
    tool({
      name: "squad_remove_agent",
      description: "Remove an agent from a squad.",
      schema: z.object({ slug: Slug, character_name: z.string().min(1) }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      async run({ slug, character_name }) {
        const agent = await squads.removeAgent(squads.named(slug), character_name);
        return `Removed ${oneLine(agent.characterName, 100)}, ${oneLine(agent.roleTitle, 100)}.`;
      },
    }),
    tool({
      name: "squad_delete",
      description: "Delete a squad with its agents, decisions and tasks; running ones are ended. The project's files stay.",
      schema: z.object({ slug: Slug }),
      kind: "effect",
      deadlineMs: 30_000,
      async run({ slug }) {
        const squad = await squads.delete(squads.named(slug));
        return `Deleted the squad "${squad.slug}". The files in ${named(squad.projectPath, 500)} were left as they are.`;
      },
    }),
  ];
}

function taskTools(squads: Squads): Tool[] {
  return [
    tool({
      name: "squad_task_status",
      description: "How a task stands: its status, what was seen of it, and its result.",
      schema: TaskId,
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: async ({ task_id }) => formatTask(squads.task(task_id), squads.lastActivity(task_id, 10)),
    }),
    tool({
      name: "squad_task_cancel",
      description: "End a task that waits or runs, with every process it began.",
      schema: TaskId,
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      run: async ({ task_id }) => `Task ${named(task_id)} is ${(await squads.cancel(task_id)).status}.`,
    }),
  ];
}

/** The squads, for the orchestrator's system message; empty if there are none. */
export function formatSquads(squads: Squads): string {
  return squads
    .list()
    .slice(0, 30)
    .map((squad) => {
      const { slug, name, projectPath, status } = squad;
      const people = squads
        .agents(slug)
        .map(
          (agent) =>
            `${oneLine(agent.characterName, 60)} – ${oneLine(agent.roleTitle, 60)}${agent.status === "idle" ? "" : ` [${agent.status}]`}`,
        );
      const open = squads
        .openTasks(slug)
        .map((task) => `  ${task.id} ${oneLine(task.agent, 60)}, ${stateOf(task)}: ${oneLine(task.description, 80)}`);
      const shown = open.length > 5 ? [...open.slice(0, 5), `  … and ${open.length - 5} more tasks`] : open;
      return [
        `- ${slug} (${named(name, 60)}), ${named(projectPath, 300)}${missingNote(squad)}, ${status}: ${people.slice(0, 12).join("; ") || "no agents yet"}`,
        ...shown,
      ].join("\n");
    })
    .join("\n");
}

/** A squad whose folder is gone can do nothing until somebody says where it is. */
function missingNote({ slug, missing }: Squad): string {
  return missing
    ? ` (missing: nothing can be delegated until it is back, or the user says where it is: io squad move ${slug} <folder>)`
    : "";
}

function roster(agents: readonly Agent[]): string {
  if (agents.length === 0) return "It has no agents yet.";
  return `Agents:\n${agents.map(({ characterName, roleTitle, charter, modelTier, status }) => `- ${oneLine(characterName, 100)}, ${oneLine(roleTitle, 100)} (tier ${modelTier}, ${status}): ${oneLine(charter, 200)}`).join("\n")}`;
}

function formatAnalysis(analysis: Analysis): string {
  const problems = analysis.problems.slice(0, 10).map(({ file, message }) => `- ${named(file)}: ${oneLine(message, 200)}`);
  const head = `${named(analysis.projectPath, 500)} (${analysis.source === "git" ? "a git repository; ignored files left out" : "not a git repository"})`;
  const found = [
    formatFacts(analysis),
    ...(analysis.containers.length > 0 ? [`Containers and infrastructure: ${namedList(analysis.containers, 30)}.`] : []),
    ...(problems.length > 0 ? [`Problems:\n${problems.join("\n")}`] : []),
    `A roster that would fit, to take or leave:\n${JSON.stringify(
      analysis.roster.map(({ roleTitle, charter, modelTier, reason }) => ({
        role_title: roleTitle,
        charter,
        model_tier: modelTier,
        reason,
      })),
      null,
      1,
    )}`,
  ];
  return `${head}\n${asData(found.join("\n"))}`;
}

const stateOf = (task: Pick<Task, "status" | "evidence">) => showState({ kind: "task", task }).words;
