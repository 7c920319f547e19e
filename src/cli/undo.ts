import type { Command } from "commander";
import { missing } from "../lib/errors.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import { changesAt, formatDifference, formatUndo, undoQuestion } from "../protocol/change-text.ts";
import type { ChangeSummary, Difference, UndoResult } from "../protocol/changes.ts";
import { confirm } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const LATEST = 100;

/** `io diff` and `io undo`: the file changes of messages and tasks. */
export function undoCommands(program: Command, shell: Shell): void {
  program
    .command("diff")
    .description("what a message or task changed in files; without an id the latest that changed something here")
    .argument("[id]", "of a message or a task")
    .option(...JSON_OPTION)
    .action(async (given: string | undefined, options: Json) => {
      const id = given ?? (await latestHere(shell)).id;
      const diff = await shell.client().request<Difference>("GET", `${changesAt(id)}/diff`);
      shell.print(diff, () => formatDifference(diff), options);
    });

  program
    .command("undo")
    .description("bring back the files that a message or task changed and nobody has changed since; once more does it again")
    .argument("[id]", "of a message or a task; without it the latest that changed something here")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (given: string | undefined, { yes, json }: Json & { yes?: boolean }) => {
      const latest = given === undefined ? await latestHere(shell) : undefined;
      const id = given ?? latest?.id ?? "";
      // Nobody is asked about what is not there.
      if (given !== undefined && !yes) await shell.client().request<Difference>("GET", `${changesAt(id)}/diff`);
      await confirm(shell, latest ? undoQuestion(latest) : `Undo ${id}?`, yes);
      const result = await shell.client().request<UndoResult>("POST", `${changesAt(id)}/undo`);
      shell.print(result, () => formatUndo(result), { json });
    });
}

/** The latest message or task with changes in, above or below the current folder. */
async function latestHere(shell: Shell): Promise<ChangeSummary> {
  const { items } = await shell.client().request<{ items: ChangeSummary[] }>("GET", `/api/changes?limit=${LATEST}`);
  const here = realOf(process.cwd());
  const found = items.find(({ folders }) => folders.some((folder) => isWithin(folder, here) || isWithin(here, folder)));
  if (!found) throw missing("No change of a file in this folder is known. Name a message or a task: io undo <id>.");
  return found;
}
