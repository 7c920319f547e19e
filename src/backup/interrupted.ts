import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { besideHome, RESTORE_NOTE, RESTORE_ROOM } from "../home/data-folder.ts";
import { isAlive } from "../lib/alive.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { codeOf, conflict } from "../lib/errors.ts";
import { type Folder, openFolder, withFolder } from "../lib/pinned/folder.ts";
import { entriesAt, entriesOf } from "../lib/pinned/list.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";

/** Where a restore unpacks if there is no data folder yet: an incomplete home until it is fully checked. */
export const unpackingBeside = (home: string): string => `${besideHome(home, "restoring")}${process.pid}`;
/** Where a restore unpacks if it replaces a data folder's content: inside that folder, where no command can write. */
export const unpackingWithin = (home: string): string => join(home, RESTORE_ROOM, String(process.pid));
/** Where the previous content goes. */
const asideAt = (home: string, time: Date): string =>
  `${besideHome(home, "before")}${time.toISOString().slice(0, 19).replace(/[-:]/g, "")}`;

/**
 * The progress of a restore that replaces a data folder's content. It is stored inside that folder, where no command can write;
 * anybody can write beside it.
 */
const Progress = z.object({
  owner: z.number().int().positive(),
  /** The folder of the checked backup. */
  restored: z.string().regex(/^\d+$/),
  aside: z.string(),
  /** Distinguishes that folder from any other with its name. */
  asideId: z.string(),
  /** Moving the previous content out, or the restored content in. */
  step: z.enum(["out", "in"]),
});
type Progress = z.infer<typeof Progress>;

const notePath = (home: string): string => join(home, RESTORE_ROOM, RESTORE_NOTE);

/** Moves a data folder's content aside and the unpacked backup in; returns where the previous content is now. */
export function replaceContents(home: string, time: Date): string {
  const aside = asideAt(home, time);
  mkdirSync(aside, { mode: 0o700 });
  const restored = basename(unpackingWithin(home));
  const progress: Progress = { owner: process.pid, restored, aside, asideId: idOf(aside), step: "out" };
  write(home, progress);
  try {
    moveOut(home, progress);
  } catch (error) {
    moveBack(home, progress);
    throw error;
  }
  moveIn(home, progress);
  return aside;
}

/**
 * Finishes a restore that was killed while it moved the old home out and the new one in, and says so. Otherwise the home would
 * hold parts of both.
 */
export function finishRestore(given: string): string | undefined {
  const home = realOf(given);
  const found = read(home);
  if (!found) return undefined;
  if (isAlive(found.owner))
    throw conflict(
      `A restore (pid ${found.owner}) is just about to put a backup in the place of ${home}. Try again in a moment.`,
    );
  const progress = { ...found, ...ownAside(home, found) };
  if (progress.step === "out") moveOut(home, progress);
  moveIn(home, progress);
  return `A restore of ${home} was interrupted at its last step; that is done now, and the backup is in place. What was there before is in ${progress.aside}.`;
}

function moveOut(home: string, progress: Progress): void {
  withFolder(home, (from) =>
    withFolder(progress.aside, (to) => {
      for (const { name } of entriesOf(from)) if (name !== RESTORE_ROOM) move(name, from, to);
    }),
  );
  write(home, { ...progress, step: "in" });
}

/** Undoes an incomplete move: everything goes back to where it was, and nothing is lost. */
function moveBack(home: string, { aside }: Progress): void {
  withFolder(aside, (from) =>
    withFolder(home, (to) => {
      for (const { name } of entriesOf(from)) move(name, from, to);
    }),
  );
  rmdirSync(aside);
  rmSync(notePath(home));
}

function moveIn(home: string, { restored }: Progress): void {
  const room = join(home, RESTORE_ROOM);
  if (existsSync(join(room, restored)))
    withFolder(join(room, restored), (from) =>
      withFolder(home, (to) => {
        for (const { name } of entriesOf(from)) move(name, from, to);
      }),
    );
  rmSync(join(room, restored), { recursive: true, force: true });
  rmSync(notePath(home), { force: true });
  removeLeftovers(home);
}

const move = (name: string, from: Folder, to: Folder) => renameSync(from.entry(name), to.entry(name));

/** The folder that was created for the previous content, or a new one: another folder of that name is somebody else's. */
function ownAside(home: string, { aside, asideId }: Progress): Pick<Progress, "aside" | "asideId"> {
  try {
    openFolder(aside).close();
    if (idOf(aside) === asideId) return { aside, asideId };
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
  }
  const other = asideAt(home, new Date());
  mkdirSync(other, { mode: 0o700 });
  return { aside: other, asideId: idOf(other) };
}

function write(home: string, progress: Progress): void {
  writeFileAtomic(notePath(home), JSON.stringify(progress), 0o600);
}

function read(home: string): Progress | undefined {
  try {
    return Progress.safeParse(JSON.parse(smallTextAt(notePath(home)) ?? "")).data;
  } catch {
    // No restore was in progress here.
    return undefined;
  }
}

function idOf(path: string): string {
  const { dev, ino } = lstatSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** Removes what killed restores left; none of it took effect. */
export function removeLeftovers(home: string): void {
  const room = join(home, RESTORE_ROOM);
  // A name that is no number is a note that was not fully written.
  const within = entriesAt(room).map(({ name }) => ({ path: join(room, name), owner: Number.parseInt(name, 10) || 0 }));
  const beside = leftBeside(home).filter(({ owner }) => owner > 0);
  for (const { path, owner } of [...within, ...beside])
    if (owner === 0 || !isAlive(owner)) rmSync(path, { recursive: true, force: true });
  removeRoomIfEmpty(home);
}

/** Another restore may still unpack there. */
function removeRoomIfEmpty(home: string): void {
  try {
    rmdirSync(join(home, RESTORE_ROOM));
  } catch (error) {
    if (!["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(codeOf(error) ?? "")) throw error;
  }
}

function leftBeside(home: string): { path: string; owner: number }[] {
  return ["restoring", "restored"].flatMap((kind) =>
    siblings(home, `${basename(home)}.${kind}-`).map((name) => ({
      path: join(dirname(home), name),
      owner: Number(name.slice(name.lastIndexOf("-") + 1)),
    })),
  );
}

function siblings(home: string, start: string): string[] {
  try {
    return readdirSync(dirname(home)).filter((name) => name.startsWith(start));
  } catch {
    // No restore could have written there either; others report what is wrong with the place.
    return [];
  }
}
