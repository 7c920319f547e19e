import type { Command } from "commander";
import { sizeText } from "../lib/size.ts";
import type { Cleaned, CleanItem } from "../protocol/runs.ts";
import { confirm, spanMs } from "./input.ts";
import { JSON_OPTION, type Shell } from "./output.ts";
import { throughOwner } from "./owner.ts";

interface CleanOptions {
  yes?: boolean;
  dryRun?: boolean;
  unmerged?: boolean;
  olderThan?: string;
  json?: boolean;
}

/** `swarm clean` and `io clean` are the same command. */
export function cleanCommand(parent: Command, shell: Shell): void {
  parent
    .command("clean")
    .description("remove what finished, failed and cancelled runs left: worktrees, branches, refs, sessions, copies")
    .argument("[run...]", "only these; the only way to have one removed that was interrupted")
    .option("--older-than <span>", "only those that ended so long ago, such as 30d, 12h or 2w")
    .option("--dry-run", "only show what would be removed")
    .option("--unmerged", "also branches whose commits nothing else has, and worktrees with work that is not committed")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action((ids: string[], options: CleanOptions) => clean(shell, ids, options));
}

async function clean(shell: Shell, ids: readonly string[], options: CleanOptions): Promise<void> {
  const before = options.olderThan === undefined ? undefined : new Date(Date.now() - spanMs("--older-than", options.olderThan));
  const unmerged = options.unmerged === true;
  const changes = ids.length === 0;
  const ask = (runs: readonly string[], dryRun: boolean): Promise<Cleaned> =>
    throughOwner(shell, {
      ask: (client) =>
        client.request("POST", "/api/runs/clean", {
          ...{ runs, unmerged, dryRun, changes },
          ...(before && { before: before.toISOString() }),
        }),
      here: async (home) => ({
        ...(await home.cleaner()(runs, { unmerged, dryRun, before })),
        ...(changes && { changes: await home.cleanChanges({ before, dryRun }) }),
      }),
    });
  const found = await ask(ids, true);
  if (options.dryRun || (found.items.length === 0 && !found.changes))
    return shell.print(found, () => format(found, "would be removed"), options);
  if (!options.yes) shell.note(format(found, "to remove"));
  await confirm(
    shell,
    `Remove this (${sizeText(found.bytes)}) for good? Runs that failed or were cancelled cannot be resumed then.`,
    options.yes,
  );
  const removed = await ask(
    found.items.map(({ run }) => run),
    false,
  );
  shell.print(removed, () => format(removed, "removed"), options);
}

function format({ items, bytes, changes = 0 }: Cleaned, what: string): string {
  const undo = changes === 0 ? [] : [`${changes} ${changes === 1 ? "record" : "records"} for undo ${what}.`];
  if (items.length === 0) return undo.join("") || "Runs have left nothing that could be removed.";
  const lines = items.flatMap((item) => [
    `${item.run}  ${item.status.padEnd(11)} ${sizeText(item.bytes).padStart(9)}  ${partsOf(item)}  (${item.projectPath})`,
    ...item.kept.map((each) => `    stays: ${each}`),
  ]);
  const stays = items.some(({ kept }) => kept.length > 0) ? ["What stays goes with --unmerged, unless it is checked out."] : [];
  return [...lines, ...undo, `${sizeText(bytes)} ${what}.`, ...stays].join("\n");
}

function partsOf({ worktrees, branches, refs, sessions }: CleanItem): string {
  const counted = (count: number, one: string, many: string) => (count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]);
  return (
    [
      ...counted(worktrees.length, "worktree", "worktrees"),
      ...counted(branches.length, "branch", "branches"),
      ...counted(refs, "ref", "refs"),
      ...counted(sessions, "session", "sessions"),
    ].join(", ") || "copies"
  );
}
