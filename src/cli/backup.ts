import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { Command } from "commander";
import type { Progress } from "../backup/progress.ts";
import { ExitCode } from "../lib/errors.ts";
import { named } from "../lib/quoted.ts";
import { sizeText } from "../lib/size.ts";
import type { Snapshot, SnapshotOptions } from "../store/snapshot.ts";
import { confirm } from "./input.ts";
import { JSON_OPTION, type Shell } from "./output.ts";
import { throughOwner } from "./owner.ts";
import { whileWorking } from "./working.ts";

interface BackupOptions {
  yes?: boolean;
  json?: boolean;
}

/** `io backup` and `io restore`: the whole data folder in one file. */
export function backupCommands(program: Command, shell: Shell): void {
  program
    .command("backup")
    .description("put the whole data folder into one file, also while IO works")
    .argument("<file>", "such as io-backup.tar.gz")
    .option("--yes", "replace a file of this name without asking")
    .option(...JSON_OPTION)
    .action(async (file: string, { json, yes }: BackupOptions) => {
      if (existsSync(file)) await confirm(shell, `${resolve(file)} is there already. Replace it?`, yes);
      leaveOnInterrupt();
      const { backUp, checkTarget } = await import("../backup/backup.ts");
      const { paths } = shell;
      checkTarget(paths, file);
      const made = await whileWorking(shell, "backing up", (tell) => {
        const onProgress = (done: Progress) => tell(formatProgress(done));
        return throughOwner(shell, {
          ask(client) {
            const snapshot = (target: string, options: SnapshotOptions) =>
              client.request<Snapshot>("POST", "/api/backup/snapshot", { folder: basename(dirname(target)), ...options });
            return backUp({ paths, file, snapshot, onProgress });
          },
          here: ({ snapshot }) => backUp({ paths, file, snapshot, onProgress }),
        });
      });
      const count = `${made.files} files, ${sizeText(made.bytes)}`;
      const text = [
        `${made.file} holds all of ${made.home} (${count}).`,
        "Your keys, tokens and everything that was said are in it, readable by whoever has the file: keep it as you would keep them.",
        `"io restore ${file}" makes a data folder of it again, here or elsewhere.`,
      ];
      shell.print(made, text.join("\n"), { json });
    });

  program
    .command("restore")
    .description("make a data folder of a backup")
    .argument("<file>", "what `io backup` wrote")
    .option("--yes", "put a data folder that is not empty aside without asking")
    .option(...JSON_OPTION)
    .action(async (file: string, { json, yes }: BackupOptions) => {
      const { hasContent, restore } = await import("../backup/restore.ts");
      const { home } = shell.paths;
      const isFull = hasContent(shell.paths);
      if (isFull && !yes) await confirm(shell, `${home} is not empty. Put it aside and restore the backup in its place?`, yes);
      leaveOnInterrupt();
      const made = await whileWorking(shell, "restoring", (tell) =>
        restore({ paths: shell.paths, file, replace: isFull, onProgress: (done) => tell(formatProgress(done)) }),
      );
      const text = [
        `${made.home} is as ${made.from} was at ${made.createdAt} (${made.files} files).`,
        ...(made.aside === null ? [] : [`What was there before is in ${made.aside}.`]),
        // A worktree legitimately links to what its checkout has installed.
        ...formatLinks(made.linksOutside.filter(({ path }) => !path.startsWith("runs/"))),
        '"io start" takes up what was under way then. Let only one of the two homes work on the same projects.',
      ];
      shell.print(made, text.join("\n"), { json });
    });
}

const MOST_LINKS = 5;

/** Links in a backup can make IO write elsewhere, so the restoring person should see them. */
function formatLinks(links: readonly { path: string; target: string }[]): string[] {
  if (links.length === 0) return [];
  const shown = links.slice(0, MOST_LINKS).map(({ path, target }) => `${named(path)} -> ${named(target)}`);
  const more = links.length > MOST_LINKS ? ` and ${links.length - MOST_LINKS} more` : "";
  return [`Links in it that lead outside of the data folder: ${shown.join(", ")}${more}.`];
}

function formatProgress({ step, files, bytes }: Progress): string {
  return `${step} ${files} files, ${sizeText(bytes)}`;
}

/** Ctrl-C exits; an exit handler removes partial files. */
function leaveOnInterrupt(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(ExitCode.interrupted));
}
