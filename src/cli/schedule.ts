import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { isFolder } from "../lib/is-folder.ts";
import { CatchUp, type Occurrence, type Schedule, type ScheduleWithCost } from "../protocol/schedules.ts";
import { wholeNumber } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { inNumbers } from "./table.ts";

const MOST = 200;
const pathOf = (id: string) => `/api/schedules/${encodeURIComponent(id)}`;

interface Page<T> {
  items: T[];
  next?: string;
}

interface AddOptions extends Json {
  squad?: string;
  swarm?: string;
  conversation?: string;
  catchUp?: CatchUp;
  maxAge?: string;
  tz?: string;
}

/** `io schedule`: what IO does at set times. */
export function scheduleCommands(program: Command, shell: Shell): void {
  const schedule = program.command("schedule").description("what is done at set times");
  const request = <T>(method: string, path: string, body?: object) => shell.client().request<T>(method, path, body);

  schedule
    .command("add")
    .description("have a message, a task or a run done at set times")
    .argument("<when>", '"0 9 * * 1-5", "every 2h", "daily 09:00", "weekdays 08:30", "in 20m" or "2030-01-31T09:00"')
    .argument("<text>", "what is to be done")
    .addOption(new Option("--squad <slug>", "give it to a squad as a task").conflicts("swarm"))
    .option("--swarm <project>", "run the pipeline with it, in a folder or a squad's project")
    .option("--conversation <name>", "the conversation it is said in")
    .addOption(new Option("--catch-up <how>", "what was due while IO did not run").choices(CatchUp.options))
    .option("--max-age <age>", "how old that may be, such as 24h")
    .option("--tz <zone>", "the time zone, such as Europe/Berlin")
    .option(...JSON_OPTION)
    .action(async (when: string, text: string, { json, swarm, ...given }: AddOptions) => {
      const folder = swarm === undefined ? undefined : resolve(swarm);
      const project = folder !== undefined && isFolder(folder) ? folder : swarm;
      const body = { when, text, ...given, ...(project !== undefined && { swarm: project }) };
      const made = await request<Schedule>("POST", "/api/schedules", body);
      shell.print(made, () => `Made ${made.id}: ${timesOf(made)}`, { json });
    });

  schedule
    .command("list")
    .description("all of them, the latest first")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await request<Page<Schedule>>("GET", `/api/schedules?limit=${MOST}`);
      const none = 'There are no schedules: io schedule add "daily 09:00" "<text>"';
      shell.print(list, () => list.items.map(line).join("\n") || none, options);
    });

  schedule
    .command("show")
    .description("one of them, and the latest times at which it was due")
    .argument("<id>", "such as s_…")
    .option("--limit <count>", "how many times", "20")
    .option(...JSON_OPTION)
    .action(async (id: string, { json, limit }: Json & { limit: string }) => {
      const most = wholeNumber("--limit", limit, MOST);
      const one = await request<ScheduleWithCost>("GET", pathOf(id));
      const past = await request<Page<Occurrence>>("GET", `${pathOf(id)}/occurrences?limit=${most}`);
      shell.print(
        { ...one, occurrences: past.items },
        () => [line(one), one.text, costLine(one), ...past.items.map(occurrence)].join("\n"),
        {
          json,
        },
      );
    });

  for (const [name, description, done] of [
    ["pause", "leave out what is due from now on", "Paused"],
    ["resume", "go on from now", "Goes on"],
  ] as const)
    schedule
      .command(name)
      .description(description)
      .argument("<id>", "such as s_…")
      .option(...JSON_OPTION)
      .action(async (id: string, options: Json) => {
        const changed = await request<Schedule>("POST", `${pathOf(id)}/${name}`);
        shell.print(changed, () => `${done}: ${timesOf(changed)}`, options);
      });

  schedule
    .command("run")
    .description("do it now, besides the times at which it is due")
    .argument("<id>", "such as s_…")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const begun = await request<Occurrence>("POST", `${pathOf(id)}/run`);
      shell.print(begun, () => `Begun: ${begun.message ?? begun.task ?? begun.run ?? begun.id}`, options);
    });

  schedule
    .command("remove")
    .description("remove it with the record of when it was due; what it began goes on")
    .argument("<id>", "such as s_…")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const removed = await request<{ id: string }>("DELETE", pathOf(id));
      shell.print(removed, `Removed ${removed.id}.`, options);
    });
}

const minute = (at: string) => `${at.slice(0, 16).replace("T", " ")} UTC`;

const timesOf = ({ when, tz, nextAt, state }: Schedule): string =>
  `${when} (${tz})${nextAt === null ? `, ${state}` : `, next ${minute(nextAt)}`}`;

function line(schedule: Schedule): string {
  const { id, state, reason, text, squad, swarm } = schedule;
  const what = squad !== null ? `task for ${squad}` : swarm !== null ? `run in ${swarm}` : "message";
  const [first = ""] = text.split("\n", 1);
  return `${id}  ${state.padEnd(6)}  ${timesOf(schedule)}  ${what}: ${first.slice(0, 80)}${reason === null ? "" : `  (${reason})`}`;
}

function costLine({ cost }: ScheduleWithCost): string {
  const { calls, inputTokens, outputTokens, money, partial } = cost;
  const used = `used: ${inNumbers(calls)} calls, ${inNumbers(inputTokens)} tokens in, ${inNumbers(outputTokens)} out`;
  return money > 0 || !partial ? `${used}, cost ${inNumbers(money)}${partial ? " and what has no price" : ""}` : used;
}

function occurrence({ dueAt, state, reason, message, task, run }: Occurrence): string {
  const begun = message ?? task ?? run;
  return `  ${minute(dueAt)}  ${state.padEnd(7)}${begun === null ? "" : `  ${begun}`}${reason === null ? "" : `  ${reason}`}`;
}
