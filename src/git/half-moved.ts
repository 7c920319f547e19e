import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf, UserError } from "../lib/errors.ts";
import { openBelow } from "../lib/pinned/folder.ts";
import { statsOf } from "../lib/pinned/list.ts";
import { removeFile } from "../lib/pinned/write.ts";
import { type Checkout, type Move, surveyMove } from "./checkout.ts";
import type { Git } from "./command.ts";
import { releaseLocks } from "./locks.ts";

/**
 * Reverts an interrupted branch move that had already changed files. Touches only files that are as the move left them;
 * returns the reason if one is not.
 */
export async function undoMove(place: Checkout, move: Move): Promise<string | undefined> {
  try {
    return await undo(place, move);
  } catch (error) {
    if (error instanceof UserError) return messageOf(error);
    throw error;
  }
}

async function undo(place: Checkout, { from, to }: Move): Promise<string | undefined> {
  const { git, root, gitDir } = place;
  const held = await releaseOwnLock(git, root, { lock: join(gitDir, "index.lock"), to });
  if (held !== undefined) return held;
  const { files, forget, indexOfFrom } = await surveyMove(place, { from, to });
  try {
    if (await isIndexAt(git, root, to, new Set(files.map(({ file }) => file)))) {
      await git.must(root, ["read-tree", "-m", "-u", to, from]);
      return undefined;
    }
    const moved = files.filter(({ state }) => state !== "from");
    const kept = moved.filter(({ state }) => state === "other");
    const back = moved.filter(({ state, inFrom }) => state !== "other" && inFrom);
    for (const { file, state, inFrom } of moved) if (state !== "other" && !inFrom) removeWithin(root, file);
    await git.must(root, ["checkout-index", "-f", "-z", "--stdin"], {
      env: { GIT_INDEX_FILE: indexOfFrom },
      input: back.map(({ file }) => `${file}\0`).join(""),
    });
    if (kept.length === 0) return undefined;
    return `a merge into the checkout was cut off, and ${kept.map(({ file }) => file).join(", ")} changed since`;
  } finally {
    forget();
  }
}

/** The index is replaced atomically, after all files are written. */
async function isIndexAt(git: Git, root: string, commit: string, changed: ReadonlySet<string>): Promise<boolean> {
  const listed = await git.must(root, ["diff-index", "--cached", "--name-only", "--no-renames", "-z", commit], {
    maxOutput: 50_000_000,
  });
  return changed.size > 0 && !listed.split("\0").some((file) => changed.has(file));
}

/** A lock left by the move itself is empty, truncated, or contains the target index. */
async function releaseOwnLock(git: Git, root: string, { lock, to }: { lock: string; to: string }): Promise<string | undefined> {
  const there = statSync(lock, { throwIfNoEntry: false });
  if (!there) return undefined;
  const held = await git.run(root, ["diff-index", "--cached", "--quiet", to], { env: { GIT_INDEX_FILE: lock } });
  if (there.size > 0 && held.code === 1) return `another git is at work there, or was cut off (${lock} exists)`;
  await releaseLocks([lock]);
  return undefined;
}

/** Removes a file of the checkout, unless its path now leads through a link. */
function removeWithin(root: string, file: string): void {
  const folder = openBelow(root, dirname(file));
  try {
    if (folder && !statsOf(folder, basename(file))?.isDirectory()) removeFile(folder, basename(file));
  } finally {
    folder?.close();
  }
}
