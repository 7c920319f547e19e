import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { usageError } from "../lib/errors.ts";
import type { Agent, Decision, ProjectConventions, Squad, Task } from "../protocol/squads.ts";
import { JSON_OPTION, type Shell } from "./output.ts";
import { delegateCommand } from "./squad-delegate.ts";
import { squadRoute } from "./squad-route.ts";
import { formatChecks, formatIsolation, formatSafety, safetyCommands } from "./squad-safety.ts";
import { agentCommands, analyzeCommand, decisionCommands } from "./squad-team.ts";
import { taskLine } from "./task.ts";

interface CreateOptions {
  slug?: string;
  universe?: string;
  isolation?: string;
  json?: boolean;
}

type View = Squad & { agents: Agent[]; decisions: Decision[]; tasks: Task[]; conventions: ProjectConventions };

export function squadCommands(program: Command, shell: Shell): void {
  const squad = program.command("squad").description("lasting teams, one for each project");

  squad
    .command("list")
    .description("all squads")
    .option(...JSON_OPTION)
    .action(async (options: { json?: boolean }) => {
      const squads = await shell.client().request<{ items: Squad[] }>("GET", "/api/squads");
      const lines = squads.items.map((one) => `${one.slug}  ${one.status}  ${one.name}  ${placeOf(one)}`);
      shell.print(squads, lines.join("\n") || 'There are no squads yet: io squad create "<name>" <folder>', options);
    });

  squad
    .command("show")
    .description("a squad with its agents, decisions and tasks")
    .argument("<slug>")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: { json?: boolean }) => {
      const view = await shell.client().request<View>("GET", squadRoute(slug));
      shell.print(view, () => format(view), options);
    });

  squad
    .command("create")
    .description("make the squad of a project's folder")
    .argument("<name>")
    .argument("<folder>", "the project's folder")
    .option("--slug <slug>", "its short name; made from the name if left out")
    .option("--universe <universe>", "a-team, transformers, thundercats, gi-joe, aliens or ghostbusters")
    .option("--isolation <kind>", "worktree: each task works on a branch of its own; none: in the project's folder")
    .option(...JSON_OPTION)
    .action(async (name: string, folder: string, options: CreateOptions) => {
      const { json: _json, ...chosen } = options;
      const wanted = { name, projectPath: resolve(folder), ...chosen };
      const { document: made, isNew } = await shell.client().make<Squad>("/api/squads", wanted);
      const works = `The squad "${made.slug}" works on ${made.projectPath} (${made.universe}).`;
      const taken = `This folder has a squad already, and nothing was made: "${made.slug}" (${made.name}) works on ${made.projectPath}.`;
      shell.print(made, isNew ? works : taken, options);
    });

  delegateCommand(squad, "delegate", shell);

  squad
    .command("delete")
    .description("delete a squad with its agents, decisions and tasks; the project's files stay")
    .argument("<slug>")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: { yes?: boolean; json?: boolean }) => {
      const client = shell.client();
      const view = await client.request<View>("GET", squadRoute(slug));
      if (!options.yes) await confirm(shell, view);
      const gone = await client.request<Squad>("DELETE", squadRoute(slug));
      shell.print(gone, `The squad "${gone.slug}" is deleted. ${gone.projectPath} was left as it is.`, options);
    });

  agentCommands(squad, shell);
  decisionCommands(squad, shell);
  analyzeCommand(squad, shell);
  safetyCommands(squad, shell);
}

async function confirm(shell: Shell, { slug, agents, decisions, tasks }: View): Promise<void> {
  const what = `${agents.length} agents, its decisions (${decisions.length} or more) and tasks (${tasks.length} or more)`;
  if (!shell.isTerminal) throw usageError(`This deletes the squad "${slug}" with ${what}. Add --yes if you mean it.`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await lines.question(`Delete the squad "${slug}" with ${what}? Type its slug to go on: `);
  lines.close();
  if (answer.trim() !== slug) throw usageError("Nothing was deleted.");
}

/** A squad's folder, with a hint if it is missing. */
function placeOf({ slug, projectPath, missing }: Squad): string {
  return missing ? `${projectPath} (missing: put it back, or io squad move ${slug} <folder>)` : projectPath;
}

function format(view: View): string {
  const { slug, name, status, universe, safety, conventions, agents, decisions, tasks } = view;
  const section = (title: string, lines: string[]) => [`${title}:`, ...(lines.length > 0 ? lines : ["  none yet"])];
  return [
    `${slug}: ${name}, ${placeOf(view)} (${status}, ${universe})`,
    `Held: ${formatSafety(safety)}`,
    `Works: ${formatIsolation(view)}`,
    `Checks: ${formatChecks(view)}`,
    `Conventions: ${conventions.files.join(", ") || "none (no AGENTS.md)"}`,
    ...conventions.refused.map((why) => `  not read: ${why}`),
    ...section(
      "Agents",
      agents.map((agent) => `  ${agent.characterName}, ${agent.roleTitle} (tier ${agent.modelTier}, ${agent.status})`),
    ),
    ...section(
      "Decisions",
      decisions.map((one) => `  [${one.createdAt}] ${one.decision}${one.context ? ` (${one.context})` : ""}`),
    ),
    ...section(
      "Tasks",
      tasks.map((task) => `  ${taskLine(task)}`),
    ),
  ].join("\n");
}
