import { resolve } from "node:path";
import type { Command } from "commander";
import type { Analysis, SuggestedAgent } from "../protocol/analysis.ts";
import type { Agent, Decision } from "../protocol/squads.ts";
import { askYesNo, wholeNumber } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { squadRoute } from "./squad-route.ts";
import { whileWorking } from "./working.ts";

const MOST_DECISIONS = 200;

/** Commands for the agents of a squad. */
export function agentCommands(squad: Command, shell: Shell): void {
  squad
    .command("agents")
    .description("the agents of a squad")
    .argument("<slug>")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: Json) => {
      const agents = await shell.client().request<{ items: Agent[] }>("GET", `${squadRoute(slug)}/agents`);
      const none = `The squad "${slug}" has no agents yet: io squad add-agent ${slug} "<role>" --charter "<text>"`;
      shell.print(agents, agents.items.map(agentLine).join("\n") || none, options);
    });

  squad
    .command("add-agent")
    .description("add an agent to a squad; its name comes from the squad's universe")
    .argument("<slug>")
    .argument("<role>", 'such as "Backend Engineer"')
    .requiredOption("--charter <text>", "what the agent answers for")
    .option("--tier <tier>", "high, medium or low: which models serve it")
    .option(...JSON_OPTION)
    .action(async (slug: string, roleTitle: string, { json, charter, tier }: Json & { charter: string; tier?: string }) => {
      const wanted = { roleTitle, charter, ...(tier !== undefined && { modelTier: tier }) };
      const agent = await shell.client().request<Agent>("POST", `${squadRoute(slug)}/agents`, wanted);
      shell.print(agent, `${agentLine(agent)} joined the squad "${slug}".`, { json });
    });

  squad
    .command("remove-agent")
    .description("take an agent out of a squad, with what it remembers")
    .argument("<slug>")
    .argument("<character>", 'its name, or the first part of it, such as "B.A."')
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (slug: string, character: string, { json, yes }: Json & { yes?: boolean }) => {
      const client = shell.client();
      if (!yes && shell.isTerminal && !(await askYesNo(`Take ${character} out of the squad "${slug}"?`)))
        return shell.note("Nothing was changed.");
      const route = `${squadRoute(slug)}/agents/${encodeURIComponent(character)}`;
      const agent = await client.request<Agent>("DELETE", route);
      shell.print(agent, `${agent.characterName} has left the squad "${slug}".`, { json });
    });
}

/** Commands for the decisions of a squad. */
export function decisionCommands(squad: Command, shell: Shell): void {
  squad
    .command("decisions")
    .description("what a squad has decided, the newest first")
    .argument("<slug>")
    .option("--search <words>", "only those that hold these words")
    .option("--limit <count>", "how many at most", "50")
    .option("--before <id>", "those before this one")
    .option(...JSON_OPTION)
    .action(async (slug: string, options: Json & { search?: string; limit: string; before?: string }) => {
      const { json, search, limit, before } = options;
      const most = wholeNumber("--limit", limit, MOST_DECISIONS);
      const query = new URLSearchParams({ limit: String(most), ...(search && { q: search }), ...(before && { before }) });
      type Page = { items: Decision[]; next?: string };
      const page = await shell.client().request<Page>("GET", `${squadRoute(slug)}/decisions?${query}`);
      const rest = page.next === undefined ? [] : [`(there are more; go on with --before ${page.next})`];
      const text = [...page.items.map(decisionLine), ...rest].join("\n");
      shell.print(page, text || `The squad "${slug}" has decided nothing${search ? " of that kind" : " yet"}.`, { json });
    });

  squad
    .command("log-decision")
    .description("write down what was decided; every agent of the squad is told")
    .argument("<slug>")
    .argument("<decision>")
    .option("--context <text>", "why")
    .option(...JSON_OPTION)
    .action(async (slug: string, decision: string, { json, context }: Json & { context?: string }) => {
      const wanted = { decision, ...(context !== undefined && { context }) };
      const logged = await shell.client().request<Decision>("POST", `${squadRoute(slug)}/decisions`, wanted);
      shell.print(logged, decisionLine(logged), { json });
    });
}

/** `io squad analyze`: what a project consists of. */
export function analyzeCommand(squad: Command, shell: Shell): void {
  squad
    .command("analyze")
    .description("what a project is made of, and who should work on it; nothing is changed")
    .argument("<folder>", "the project's folder")
    .option(...JSON_OPTION)
    .action(async (folder: string, options: Json) => {
      const client = shell.client();
      const analysis = await whileWorking(shell, "looking at the project", () =>
        client.request<Analysis>("POST", "/api/analyze", { projectPath: resolve(folder) }),
      );
      shell.print(analysis, () => formatAnalysis(analysis), options);
    });
}

function agentLine({ characterName, roleTitle, modelTier, status }: Agent): string {
  return `${characterName}, ${roleTitle} (tier ${modelTier}, ${status})`;
}

function decisionLine({ createdAt, decision, context, author }: Decision): string {
  return `[${createdAt}] ${decision}${context ? ` (${context})` : ""}${author ? `  by ${author}` : ""}`;
}

function formatAnalysis(analysis: Analysis): string {
  const { projectPath, size, languages, frameworks, packageManagers, testTools, commands, problems, roster } = analysis;
  const shares = languages.slice(0, 5).map(({ name, share }) => `${name} ${Math.round(share * 100)} %`);
  const named = (title: string, names: string[]) => (names.length === 0 ? [] : [`${title}: ${names.join(", ")}`]);
  return [
    `${projectPath}: ${size.files} files, ${size.lines} lines of code`,
    ...named("Languages", shares),
    ...named("Frameworks", frameworks),
    ...named("Package managers", packageManagers),
    ...named("Test tools", testTools),
    ...commands.map(
      ({ purpose, command, cwd, from, isGuess }) =>
        `${purpose}: ${command}${cwd === "." ? "" : ` (in ${cwd})`}${isGuess ? " (a guess: no file says so)" : `, from ${from}`}`,
    ),
    ...problems.map(({ file, message }) => `warning: ${file}: ${message}`),
    "Suggested agents:",
    ...roster.map(suggestedLine),
  ].join("\n");
}

export function suggestedLine({ roleTitle, modelTier, charter, reason }: SuggestedAgent): string {
  return `  ${roleTitle} (tier ${modelTier}): ${charter} [${reason}]`;
}
