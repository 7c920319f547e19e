import { Argument, type Command, InvalidArgumentError } from "commander";
import type { Limit } from "../home/safety-config.ts";
import { usageError } from "../lib/errors.ts";
import { AMOUNTS, type Amount, BudgetKind, type BudgetReport, type BudgetUse } from "../protocol/budgets.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { inNumbers, tableOf } from "./table.ts";

type SetOptions = Json & Limit & { off?: boolean };

export function budgetCommands(program: Command, shell: Shell): void {
  const budget = program.command("budget").description("how much may be used before you are asked");

  budget
    .command("show")
    .description("the limits, and what is used and left of each")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const report = await shell.client().request<BudgetReport>("GET", "/api/budgets");
      shell.print(report, () => format(report), options);
    });

  budget
    .command("set")
    .description("set or take away a limit; work that waits for it and has room again goes on")
    .addArgument(new Argument("<kind>", "of what").choices(BudgetKind.options))
    .option("--tokens <n>", "input and output together", wholeNumber)
    .option("--calls <n>", "calls of a model", wholeNumber)
    .option("--money <x>", 'in the currency of "prices" in config.json', positiveNumber)
    .option("--off", "no limit of this kind")
    .option(...JSON_OPTION)
    .action(async (kind: BudgetKind, { json, off = false, ...given }: SetOptions) => {
      if (off === Object.keys(given).length > 0)
        throw usageError("Say what the limit is, with --tokens, --calls or --money, or take it away with --off.");
      const client = shell.client();
      const before = (await client.request<BudgetReport>("GET", "/api/budgets")).limits[kind];
      const limits = off ? {} : { [kind]: { ...before, ...given } };
      const report = await client.request<BudgetReport>("PUT", `/api/budgets?kind=${kind}`, limits);
      shell.print(report, () => format(report), { json });
    });
}

function format({ limits, items }: BudgetReport): string {
  const set = BudgetKind.options.flatMap((kind) => (limits[kind] ? [`${kind}: ${formatLimit(limits[kind])}`] : []));
  const rows = items.flatMap((item) => AMOUNTS.filter((amount) => isShown(item, amount)).map((amount) => rowOf(item, amount)));
  const waiting = items.filter(({ approval }) => approval !== null);
  const unpriced = [...new Set(items.filter(({ limit }) => limit.money !== undefined).flatMap((item) => item.unpriced))];
  return [
    set.length > 0 ? `Limits: ${set.join("; ")}` : "Nothing is limited: io budget set day --tokens 1000000 would be a beginning.",
    tableOf([["budget", "of", "used", "limit", "left"], ...rows]),
    ...waiting.map(
      ({ kind, name, approval }) =>
        `${kind} ${name} is used up and its work waits: io approval allow ${approval}, or deny, or raise the limit.`,
    ),
    ...(unpriced.length > 0
      ? [`No limit on money holds ${unpriced.join(", ")}: there is no price under "prices" in config.json.`]
      : []),
  ].join("\n");
}

/** A budget without a limit shows only its tokens. */
function isShown({ limit }: BudgetUse, amount: Amount): boolean {
  return limit[amount] !== undefined || (Object.keys(limit).length === 0 && amount === "tokens");
}

function rowOf({ kind, name, limit, used, left }: BudgetUse, amount: Amount): string[] {
  const orNone = (value: number | undefined) => (value === undefined ? "none" : inNumbers(value));
  return [`${kind} ${name}`, amount, inNumbers(used[amount]), orNone(limit[amount]), orNone(left[amount])];
}

function formatLimit(limit: Limit): string {
  return AMOUNTS.flatMap((amount) => (limit[amount] === undefined ? [] : [`${inNumbers(limit[amount])} ${amount}`])).join(", ");
}

function positiveNumber(text: string): number {
  const value = Number(text.replaceAll(",", ""));
  if (!(value > 0) || !Number.isFinite(value)) throw new InvalidArgumentError("It must be a number above 0.");
  return value;
}

function wholeNumber(text: string): number {
  const value = positiveNumber(text);
  if (!Number.isInteger(value)) throw new InvalidArgumentError("It must be a whole number above 0.");
  return value;
}
