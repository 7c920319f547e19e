import type { Command } from "commander";
import type { Analysis } from "../protocol/analysis.ts";
import type { Agent, Squad, Task } from "../protocol/squads.ts";
import { confirm } from "./input.ts";
import { otherProject, WITH_OPTION } from "./other-projects.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { squadRoute } from "./squad-route.ts";
import { suggestedLine } from "./squad-team.ts";

interface DelegateOptions extends Json {
  agent?: string;
  with?: string[];
  conversation: string;
  yes?: boolean;
}

/** `io squad delegate` and `io task add`: gives a squad a task, after adding agents if it has none. */
export function delegateCommand(parent: Command, name: "delegate" | "add", shell: Shell): void {
  parent
    .command(name)
    .description("give a task to a squad; it is done in the background")
    .argument("<slug>")
    .argument("<task>")
    .option("--agent <character>", "who is to do it; the fitting one if left out")
    .option(...WITH_OPTION)
    .option("--conversation <name>", "where the result is told", "main")
    .option("--yes", "for a squad without agents: take those that the analysis of its project suggests")
    .option(...JSON_OPTION)
    .action(async (slug: string, task: string, { agent, with: names, conversation, yes, json }: DelegateOptions) => {
      const client = shell.client();
      const { items } = await client.request<{ items: Agent[] }>("GET", `${squadRoute(slug)}/agents`);
      if (items.length === 0) await takeSuggested(shell, slug, yes);
      const wanted = { task, conversation, ...(agent && { agent }), ...(names && { with: names.map(otherProject) }) };
      const { document: made, isNew } = await client.make<Task>(`${squadRoute(slug)}/tasks`, wanted);
      const joined = isNew ? "" : " The same task is under way already; its result is told to both.";
      const text = `${made.id}: ${made.agent}. ${made.reason ?? ""}${joined}\nFollow it with: io task show ${made.id}`;
      shell.print(made, text, { json });
    });
}

/** Offers a squad without agents those suggested for its project. */
async function takeSuggested(shell: Shell, slug: string, yes: boolean | undefined): Promise<void> {
  const client = shell.client();
  const { projectPath } = await client.request<Squad>("GET", squadRoute(slug));
  const { roster } = await client.request<Analysis>("POST", "/api/analyze", { projectPath });
  shell.note(
    [`The squad "${slug}" has no agents yet. For ${projectPath} these are suggested:`, ...roster.map(suggestedLine)].join("\n"),
  );
  await confirm(shell, "Take them into the squad?", yes);
  for (const { roleTitle, charter, modelTier } of roster) {
    const added = await client.request<Agent>("POST", `${squadRoute(slug)}/agents`, { roleTitle, charter, modelTier });
    shell.note(`${added.characterName}, ${added.roleTitle}, joined the squad.`);
  }
}
