import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { ExitCode } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { stateOfPull } from "../protocol/pulls.ts";
import type { Watch, WatchDetail, WatchTrigger } from "../protocol/watches.ts";
import { wholeNumber } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const MOST_ROUNDS = 20;
const LOOK_MS = 500;
const AT_WORK: readonly WatchTrigger["state"][] = ["waiting", "claiming", "starting", "working"];
const isAtWork = ({ state }: WatchTrigger) => AT_WORK.includes(state);
const pathOf = (id: string) => `/api/watches/${encodeURIComponent(id)}`;

interface AddOptions extends Json {
  label?: string;
  mention?: string;
  reviews?: boolean;
  checks?: boolean;
  maxRounds?: string;
}

/** `io watch`: turns issues into pull requests, and handles reviews and failed checks. */
export function watchCommands(program: Command, shell: Shell): void {
  const watch = program.command("watch").description("repositories whose issues, reviews and failed checks set IO to work");
  const request = <T>(method: string, path: string, body?: object) => shell.client().request<T>(method, path, body);

  watch
    .command("add")
    .description("watch the repository of a project; only people who may write there set IO to work")
    .argument("<project>", "its folder, or a squad")
    .option("--label <name>", "work on issues that get this label")
    .option("--mention <@name>", "work on issues on which somebody writes this name")
    .option("--reviews", "answer reviews of and comments on IO's pull requests")
    .option("--checks", "work on failed checks of IO's pull requests")
    .option("--max-rounds <count>", "how often one pull request is worked on again", "3")
    .option(...JSON_OPTION)
    .action(async (project: string, { json, maxRounds = "3", ...given }: AddOptions) => {
      const folder = resolve(project);
      const body = { project: isFolder(folder) ? folder : project, ...given };
      const made = await request<Watch>("POST", "/api/watches", {
        ...body,
        maxRounds: wholeNumber("--max-rounds", maxRounds, MOST_ROUNDS),
      });
      shell.print(made, () => `Watching: ${line(made)}`, { json });
    });

  watch
    .command("list")
    .description("all watched repositories")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const list = await request<{ items: Watch[] }>("GET", "/api/watches");
      const none = "No repository is watched: io watch add <project> --label <name> --reviews --checks";
      shell.print(list, () => list.items.map(line).join("\n") || none, options);
    });

  watch
    .command("show")
    .description("when it was looked at, what was seen, what was done and why not")
    .argument("<id>", "such as w_…")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const one = await request<WatchDetail>("GET", pathOf(id));
      shell.print(one, () => describe(one), options);
    });

  for (const [name, description, done] of [
    ["pause", "do not look at it until it is resumed", "Paused"],
    ["resume", "look at it again", "Watching"],
  ] as const)
    watch
      .command(name)
      .description(description)
      .argument("<id>", "such as w_…")
      .option(...JSON_OPTION)
      .action(async (id: string, options: Json) => {
        const changed = await request<Watch>("POST", `${pathOf(id)}/${name}`);
        shell.print(changed, () => `${done}: ${line(changed)}`, options);
      });

  watch
    .command("wait")
    .description("look at it now, and wait until nothing that this set going is left to do")
    .argument("<id>", "such as w_…")
    .option("--at-most <minutes>", "how long to wait; what is not finished then goes on with the daemon")
    .option(...JSON_OPTION)
    .action(async (id: string, { atMost, json }: Json & { atMost?: string }) => {
      const minutes = atMost === undefined ? Number.POSITIVE_INFINITY : wholeNumber("--at-most", atMost);
      const until = Date.now() + minutes * 60_000;
      const before = await request<WatchDetail>("GET", pathOf(id));
      const look = () => request<WatchDetail>("GET", pathOf(id));
      const asked = await request<Watch>("POST", `${pathOf(id)}/resume`);
      let now = await look();
      const isLookedAt = () => now.lookedAt !== asked.lookedAt || now.problem !== null;
      while ((!isLookedAt() || now.triggers.some(isAtWork)) && Date.now() < until) {
        await sleep(LOOK_MS);
        now = await look();
      }
      shell.print(now, () => describe(now), { json });
      const wasOver = new Set(before.triggers.filter((each) => !isAtWork(each)).map((each) => each.id));
      const isBad = ({ id: trigger, state }: WatchTrigger) => !wasOver.has(trigger) && ["failed", "given up"].includes(state);
      if (!isLookedAt() || now.triggers.some(isAtWork)) {
        shell.note("It is still at work.");
        process.exitCode = ExitCode.unapproved;
      } else if (now.problem !== null || now.triggers.some(isBad)) process.exitCode = ExitCode.failed;
    });

  watch
    .command("remove")
    .description("watch it no more; what was begun goes on")
    .argument("<id>", "such as w_…")
    .option(...JSON_OPTION)
    .action(async (id: string, options: Json) => {
      const removed = await request<{ id: string }>("DELETE", pathOf(id));
      shell.print(removed, `Removed ${removed.id}.`, options);
    });
}

function line({ id, state, host, repo, label, mention, reviews, checks, problem }: Watch): string {
  const what = [label !== null && `label ${label}`, mention, reviews && "reviews", checks && "checks"].filter(Boolean).join(", ");
  return `${id}  ${state.padEnd(6)}  ${host}/${repo}: ${what}${problem === null ? "" : `  (${problem})`}`;
}

function describe(watch: WatchDetail): string {
  const { projectPath, lookedAt, nextAt, saw, maxRounds, triggers, pulls } = watch;
  return [
    line(watch),
    `project ${projectPath}, at most ${maxRounds} rounds a pull request`,
    lookedAt === null ? "not looked at yet" : `looked at ${lookedAt}: ${saw ?? "nothing"}; next ${nextAt ?? "now"}`,
    ...pulls.map(pullLine),
    ...triggers.map(triggerLine),
  ].join("\n");
}

const pullLine = ({ number, url, ...pull }: WatchDetail["pulls"][number]): string =>
  `  pull request #${number} ${stateOfPull(pull)}: ${url}`;

function triggerLine({ createdAt, number, kind, by, state, reason, run }: WatchTrigger): string {
  const who = by === "" ? "" : ` by ${by}`;
  return `  ${createdAt}  #${number} ${kind}${who}: ${state}${run === null ? "" : `, ${run}`}${reason === null ? "" : `; ${reason}`}`;
}
