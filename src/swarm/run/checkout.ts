import { existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { git } from "../../git/command.ts";
import { refuseDataFolder } from "../../lib/data-folder.ts";
import { usageError } from "../../lib/errors.ts";
import { inside } from "../pipeline/agents.ts";
import { FILE_NAME } from "../pipeline/file.ts";
import type { RunSettings } from "../pipeline/settings.ts";

/** The project around a folder: the folder itself if it has a pipeline file, else the top of its checkout. */
export async function projectAround(folder: string): Promise<string> {
  if (existsSync(join(folder, FILE_NAME))) return folder;
  const top = await git(folder, ["rev-parse", "--show-toplevel"]);
  return (top.code === 0 && top.stdout.trim()) || folder;
}

export function openProject(path: string, dataFolder?: string): string {
  const folder = resolve(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw usageError(`${folder}: is no folder. Name the project's folder.`);
  if (dataFolder !== undefined) refuseDataFolder(dataFolder, folder);
  return realpathSync(folder);
}

/** Refuses a folder of agents that somebody set and that is not there. */
export function checkAgentsDir(root: string, { agentsDir, agentsDirSet }: Pick<RunSettings, "agentsDir" | "agentsDirSet">): void {
  if (!agentsDirSet) return;
  const path = resolve(root, agentsDir);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  throw usageError(
    `AGENTS_DIR: found ${JSON.stringify(agentsDir)}: ${path} is no folder. Name the folder that holds the agents, or unset it.`,
  );
}

/** Refuses a folder for documents that cannot be one, before anything is begun. */
export function checkDocDir(root: string, docDir: string): void {
  let path = root;
  for (const part of docDir.split("/")) {
    path = join(path, part);
    const there = statSync(path, { throwIfNoEntry: false });
    if (!there) return;
    const why = !there.isDirectory()
      ? `${path} is a file`
      : inside(root, realpathSync(path))
        ? undefined
        : `${path} leads out of the project to ${realpathSync(path)}`;
    if (why) throw usageError(`DOC_DIR: found ${JSON.stringify(docDir)}: ${why}. Name a folder inside the project.`);
  }
}
