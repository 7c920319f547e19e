import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { offThread } from "../lib/off-thread.ts";
import { type Folder, makeFolder, named as namingErrors, openFolder } from "../lib/pinned/folder.ts";
import { fileId } from "../lib/pinned/identity.ts";
import { statsOf } from "../lib/pinned/list.ts";
import { readPlain, readPlainAt, tellAbsent } from "../lib/pinned/read.ts";
import { removeFile, replaceFile, syncFolder } from "../lib/pinned/write.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { asData } from "../lib/untrusted.ts";
import { isWithin } from "../lib/within.ts";
import { removeTree } from "../process/remove-tree.ts";
import { type Edit, type EditedFile, type EditJob, editBytes } from "./edit-text.ts";
import { exchanged, notAFile } from "./file-refusals.ts";
import type { PathGuard } from "./guard.ts";
import { Refusal, type ToolContext, ToolError } from "./tool.ts";

/** The largest file that is edited, in bytes. */
export const LARGEST_EDITED = 5_000_000;
/** Editing a file of up to this many bytes takes only a few milliseconds. */
const SMALL = 100_000;
const EDIT_MS = 20_000;

/** A path as the model spelled it, and the real path it leads to. */
export interface Target {
  path: string;
  real: string;
}

/** Replaces exact pieces of a file's text in one atomic step, all or none, and returns the diff. */
export async function editFile(
  { path, real }: Target,
  edits: readonly Edit[],
  guard: PathGuard,
  { cwd, besides, approved: [approved] = [], signal, onEdit }: ToolContext,
): Promise<string> {
  if (dirname(real) === real) throw notAFile(path, "a folder", "edited");
  const folder = openFolder(dirname(real));
  try {
    const name = basename(real);
    const read = readPlain(folder, name, LARGEST_EDITED);
    if ("absent" in read) throw notAFile(path, read.absent, "edited");
    if (approved?.file !== undefined && fileId(read.stats) !== approved.file) throw exchanged(path);
    const edited = await edit({ bytes: read.bytes, edits }, signal);
    if ("problem" in edited) throw new ToolError(`${named(path, 300)} was not edited. ${edited.problem}`);
    const refusal = guard.refuse(real, "write", cwd, besides);
    if (refusal) throw new Refusal(refusal);
    const beforeRename = () => {
      if (fileId(statsOf(folder, name)) !== fileId(read.stats))
        throw new ToolError(
          `${named(path, 300)} was changed by somebody else just now and was not edited. Read it and try again.`,
        );
    };
    replaceFile(folder, name, edited.bytes, { like: read.stats, beforeRename });
    tellEdit(onEdit, real, read.bytes, edited.bytes);
    const places = edited.count === 1 ? "1 place" : `${edited.count} places`;
    return `Edited ${named(path, 300)} in ${places}.\n${asData(edited.difference)}`;
  } finally {
    folder.close();
  }
}

/** An edit is not reported if the text before or after it is larger than this, in bytes. */
export const LARGEST_TOLD = 10_000;

/** Reports the edit of a small text file. */
export function tellEdit(onEdit: ToolContext["onEdit"], path: string, before: Uint8Array | null, after: Uint8Array): void {
  const isSmall = (bytes: Uint8Array) => bytes.length <= LARGEST_TOLD && !bytes.includes(0);
  if (!onEdit || !isSmall(after) || (before !== null && !isSmall(before))) return;
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("utf8");
  onEdit({ path, before: before === null ? null : text(before), after: text(after) });
}

/** The diff that edits would make, for a person who is asked. */
export async function editDifference(real: string, edits: readonly Edit[]): Promise<string> {
  const read = readPlainAt(real, LARGEST_EDITED);
  if ("absent" in read) return `(it would not be edited: what is there ${tellAbsent(read.absent)})`;
  const edited = await edit({ bytes: read.bytes, edits });
  return "problem" in edited ? `(it would not be edited. ${edited.problem})` : edited.difference;
}

/** Edits large files in another thread, so that nothing else waits. */
async function edit(job: EditJob, signal?: AbortSignal): Promise<EditedFile> {
  if (job.bytes.length <= SMALL) return editBytes(job);
  const options = { deadlineMs: EDIT_MS, memoryMb: 512, ...(signal && { signal }) };
  const edited = await offThread<EditedFile>("tools/edit-worker.js", job, options);
  return edited ?? { problem: `It took longer than ${EDIT_MS / 1_000} s; make fewer edits at once.` };
}

/** Moves or renames a file, folder or link; an existing target is never overwritten. */
export async function moveFile(from: Target, to: Target, guard: PathGuard, context: ToolContext): Promise<string> {
  const source = openFolder(dirname(from.real));
  let target: Folder | undefined;
  try {
    const moved = checked(source, from, context);
    if (isWithin(from.real, to.real)) throw new ToolError(`${named(from.path, 300)} cannot be moved into itself.`);
    if (moved.isDirectory()) refuseHolding(from, guard, context, "moved");
    target = makeFolder(dirname(to.real), 0o777);
    if (statsOf(target, basename(to.real)))
      throw new ToolError(
        `${named(to.path, 300)} is already there; name a path that is free, with the file's own name at its end.`,
      );
    rename(source, basename(from.real), target, basename(to.real));
    return `Moved ${named(from.path, 300)} to ${named(to.path, 300)}.`;
  } finally {
    source.close();
    target?.close();
  }
}

/** Deletes a file, a link, or a folder with its contents. A folder is renamed first, so that it goes at once or not at all. */
export async function deleteFile(target: Target, guard: PathGuard, context: ToolContext): Promise<string> {
  const { path, real } = target;
  const folder = openFolder(dirname(real));
  try {
    const gone = checked(folder, target, context);
    if (!gone.isDirectory()) {
      removeFile(folder, basename(real));
      syncFolder(folder);
      return `Deleted ${named(path, 300)}.`;
    }
    refuseHolding(target, guard, context, "deleted");
    const aside = `.${basename(real).slice(0, 40)}.${randomBytes(6).toString("hex")}.deleted`;
    rename(folder, basename(real), folder, aside);
    await removeTree(join(folder.path, aside));
    return `Deleted the folder ${named(path, 300)} with all that was in it.`;
  } finally {
    folder.close();
  }
}

/** The current state of the target, if it is still what was approved. */
function checked(folder: Folder, { path, real }: Target, { approved: [place] = [] }: ToolContext) {
  if (dirname(real) === real) throw new Refusal(`${named(path, 300)} is or holds everything and stays.`);
  const stats = statsOf(folder, basename(real));
  if (!stats) throw notAFile(path, "missing", "found");
  if (place?.file !== undefined && place.file !== fileId(stats)) throw exchanged(path);
  return stats;
}

function rename(from: Folder, name: string, to: Folder, newName: string): void {
  namingErrors(from, () => {
    from.check();
    to.check();
    renameSync(from.entry(name), to.entry(newName));
  });
  syncFolder(to);
  if (from.path !== to.path) syncFolder(from);
}

/** Refuses to move or delete a folder that somebody works in, or that contains something no tool may write. */
function refuseHolding(
  { path, real }: Target,
  guard: PathGuard,
  { cwd, within, besides = [], project }: ToolContext,
  what: "moved" | "deleted",
): void {
  if (basename(real) === ".git") throw new Refusal(`${named(path, 300)} is a repository's own record and is not ${what}.`);
  const kept = [cwd, within, ...besides, project, homedir(), ...guard.secrets(), ...guard.readOnly()];
  const held = kept.find((each) => each !== undefined && isWithin(real, realOf(each)));
  if (held !== undefined) throw new Refusal(`${named(path, 300)} is or holds ${named(held, 300)} and is not ${what}.`);
}
