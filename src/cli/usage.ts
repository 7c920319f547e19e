import { type Command, Option } from "commander";
import type { Cost, UsageItem, UsageSummary } from "../protocol/usage.ts";
import { UsageGroup } from "../protocol/usage.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { inNumbers, tableOf } from "./table.ts";

export function usageCommand(program: Command, shell: Shell): void {
  program
    .command("usage")
    .description("what model calls used and cost")
    .addOption(new Option("--by <group>", "what to add up by").choices(UsageGroup.options).default("model"))
    .option("--since <when>", "7d, a date such as 2026-01-31, or all (conversations, tasks and runs: 30d)")
    .option(...JSON_OPTION)
    .action(async (options: Json & { by: string; since?: string }) => {
      const query = new URLSearchParams({ by: options.by, ...(options.since !== undefined && { since: options.since }) });
      const summary = await shell.client().request<UsageSummary>("GET", `/api/usage?${query}`);
      shell.print(summary, () => format(summary), options);
    });
}

/** The total first, then its parts. */
function format({ by, since, total, items }: UsageSummary): string {
  const priced = total.money > 0 || !total.partial;
  const cells = (name: string, cost: Cost) => [
    name,
    ...[cost.calls, cost.inputTokens, cost.outputTokens, cost.cacheReadTokens].map(inNumbers),
    ...(priced ? [`${inNumbers(cost.money)}${cost.partial ? " *" : ""}`] : []),
  ];
  const head = [by, "calls", "input", "output", "of it cached", ...(priced ? ["cost"] : [])];
  const lines = tableOf([head, cells("all", total), ...items.map((item) => cells(nameOf(item), item))]);
  return [`What was used ${since === null ? "so far" : `since ${since}`}, by ${by}:`, lines, ...remarks(total)].join("\n");
}

const nameOf = ({ name, squad }: UsageItem) => (squad === undefined ? name : `${name} (${squad})`);

function remarks({ partial, unpriced, rehearsalCalls }: Cost): string[] {
  return [
    ...(partial
      ? [
          `* Without ${unpriced.join(", ")}: there is no price for ${unpriced.length === 1 ? "it" : "them"} under "prices" in config.json.`,
        ]
      : []),
    ...(rehearsalCalls > 0
      ? [`${inNumbers(rehearsalCalls)} of the calls were served by the rehearsal model and cost nothing.`]
      : []),
  ];
}
