import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { repositoryAbove } from "../../git/repository.ts";
import { refuseDataFolder } from "../../home/data-folder.ts";
import { codeOf, usageError } from "../../lib/errors.ts";
import { quotedForShell } from "../../lib/invocation.ts";
import { isFolder } from "../../lib/is-folder.ts";
import { named } from "../../lib/quoted.ts";
import { statsAt } from "../../lib/stats-at.ts";
import { inside } from "../pipeline/agents.ts";
import { FILE_NAME } from "../pipeline/file.ts";
import type { RunSettings } from "../pipeline/settings.ts";

/** The project around a folder: the folder itself if it has a pipeline file, else the top of its checkout. */
export function projectAround(folder: string): string {
  if (existsSync(join(folder, FILE_NAME))) return folder;
  const marker = repositoryAbove(folder);
  return marker === undefined ? folder : dirname(marker);
}

export function openProject(path: string, dataFolder?: string): string {
  const folder = resolve(path);
  if (!isFolder(folder)) throw usageError(`${named(folder, 300)}: is no folder. Name the project's folder.`);
  if (dataFolder !== undefined) refuseDataFolder(dataFolder, folder);
  return realpathSync(folder);
}

/** Refuses an agents folder that somebody set and that does not exist. */
export function checkAgentsDir(root: string, { agentsDir, agentsDirSet }: Pick<RunSettings, "agentsDir" | "agentsDirSet">): void {
  if (!agentsDirSet) return;
  const path = resolve(root, agentsDir);
  if (isFolder(path)) return;
  throw usageError(
    `AGENTS_DIR: found ${JSON.stringify(agentsDir)}: ${path} is no folder. Name the folder that holds the agents, or unset it.`,
  );
}

/** Refuses an unusable documents folder before anything is begun. */
export function checkDocDir(root: string, docDir: string): void {
  let path = root;
  for (const part of docDir.split("/")) {
    if (!statsAt(join(path, part))) break;
    path = join(path, part);
    const why = !isFolder(path)
      ? `${path} is no folder, or leads to none`
      : inside(root, realpathSync(path))
        ? undefined
        : `${path} leads out of the project to ${realpathSync(path)}`;
    if (why) throw usageError(`DOC_DIR: found ${JSON.stringify(docDir)}: ${why}. Name a folder inside the project.`);
  }
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw usageError(
      `DOC_DIR: found ${JSON.stringify(docDir)}: ${path} cannot be written (${codeOf(error)}), and a run writes its documents there. Nothing was begun. Make it writable (chmod u+w ${quotedForShell(path)}), or name a folder inside the project that is.`,
    );
  }
}
