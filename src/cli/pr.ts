import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { ExitCode } from "../lib/errors.ts";
import { isSettled, type PullRequest, stateOfPull } from "../protocol/pulls.ts";
import type { Run } from "../protocol/runs.ts";
import { askYesNo } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const LOOK_MS = 250;

interface PrOptions extends Json {
  draft?: boolean;
  base?: string;
  label?: string[];
  yes?: boolean;
}

/** `io pr`: opens a pull request for a branch of IO. */
export function prCommand(program: Command, shell: Shell): void {
  program
    .command("pr")
    .description("push the branch of a run or a task and open a pull request with the evidence; again: bring it up to date")
    .argument("<id>", "of a run or a task")
    .option("--draft", "open it as a draft")
    .option("--base <branch>", "the branch it is to go into, in place of the repository's default branch")
    .option("--label <name>", "a label for it; more than once for several", (name: string, all: string[] = []) => [...all, name])
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (id: string, { draft, base, label, yes, json }: PrOptions) => {
      const owner = id.startsWith("t_") ? { task: id } : { run: id };
      const wanted = { ...owner, ...(draft && { draft }), ...(base && { base }), ...(label && { labels: label }) };
      const asked = await shell.client().request<PullRequest>("POST", "/api/pulls", wanted);
      const pull = await untilSettled(shell, asked, { yes });
      const all = await together(shell, id, pull, { yes });
      shell.print(pull, () => all.map(formatPull).join("\n"), { json });
      if (!all.every(isGood)) process.exitCode = ExitCode.failed;
    });
}

/** Waits until a pull request is settled, and lets a person answer its question here. */
export async function untilSettled(
  shell: Shell,
  first: PullRequest,
  { yes }: { yes?: boolean | undefined },
): Promise<PullRequest> {
  const client = shell.client();
  let told: string | undefined;
  for (let pull = first; ; pull = await client.request<PullRequest>("GET", `/api/pulls/${pull.id}`)) {
    if (isSettled(pull.state)) return pull;
    if (pull.approval !== null && pull.approval !== told) {
      told = pull.approval;
      const what = `push ${pull.branch} to ${pull.host}/${pull.repo} and open a pull request into ${pull.base}`;
      const isAllowed = yes || (shell.isTerminal ? await askYesNo(`May IO ${what}?`) : undefined);
      if (isAllowed === undefined) shell.note(`It waits for a person to allow it to ${what}: io approval allow ${told}`);
      else await client.request("POST", `/api/approvals/${told}`, { decision: isAllowed ? "allow" : "deny" });
    }
    await sleep(LOOK_MS);
  }
}

/** All pull requests of one run or task once they are settled, in merge order. */
async function together(
  shell: Shell,
  owner: string,
  own: PullRequest,
  options: { yes?: boolean | undefined },
): Promise<PullRequest[]> {
  const query = new URLSearchParams({ owner });
  const { items } = await shell.client().request<{ items: PullRequest[] }>("GET", `/api/pulls?${query}`);
  const others: PullRequest[] = [];
  for (const each of items) if (each.id !== own.id) others.push(await untilSettled(shell, each, options));
  return [...others, own];
}

export const isGood = ({ state }: PullRequest): boolean => ["open", "merged"].includes(state);

/** A pull request in a sentence. */
export function formatPull(pull: PullRequest): string {
  const { url, reason, draft, host, repo, number, base, labels } = pull;
  const why = reason === null ? "" : `\n${reason}`;
  if (number === null) return `No pull request was opened${reason === null ? "." : `: ${reason}`}`;
  const what = `${host}/${repo}#${number} into ${base}${labels.length > 0 ? `, labels: ${labels.join(", ")}` : ""}`;
  return `${url}\n${draft ? "Draft" : "Pull request"} ${what}: ${stateOfPull(pull)}.${why}`;
}

/** The pull requests of a run; none while the run can still continue. */
export async function pullsOf(shell: Shell, { id, status }: Run, options: { yes?: boolean | undefined }): Promise<PullRequest[]> {
  if (status === "interrupted" || status === "running") return [];
  const found = await shell.client().request<PullRequest>("GET", `/api/pulls/${encodeURIComponent(id)}`);
  return together(shell, id, await untilSettled(shell, found, options), options);
}
