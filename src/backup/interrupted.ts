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

/** Where a restore unpacks if there is no data folder yet: half a home, until it has been checked to its last byte. */
export const unpackingBeside = (home: string): string => `${besideHome(home, "restoring")}${process.pid}`;
/** Where it unpacks if it is to replace what a data folder holds: inside of that, where no command can write. */
export const unpackingWithin = (home: string): string => join(home, RESTORE_ROOM, String(process.pid));
/** Where what was there before goes. */
const asideAt = (home: string, time: Date): string =>
  `${besideHome(home, "before")}${time.toISOString().slice(0, 19).replace(/[-:]/g, "")}`;

/**
 * How far a restore has come that takes the place of what a data folder holds. It lies in that very folder, and no command can
 * write there: what stands beside a data folder, anybody can have put there.
 */
const Progress = z.object({
  owner: z.number().int().positive(),
  /** The folder of the checked backup. */
  restored: z.string().regex(/^\d+$/),
  aside: z.string(),
  /** Tells that folder from any other that takes its name. */
  asideId: z.string(),
  /** What was there is moved out, or what was restored moved in. */
  step: z.enum(["out", "in"]),
});
type Progress = z.infer<typeof Progress>;

const noteIn = (home: string): string => join(home, RESTORE_ROOM, RESTORE_NOTE);

/** Puts what a data folder holds aside, and what was unpacked in it in its place; says where the first is now. */
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
 * Finishes a restore that was killed while it moved the old home out and the new one in; says so. Anybody else would find
 * parts of both.
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

/** Nothing was lost: what could not all be moved out stands again where it was. */
function moveBack(home: string, { aside }: Progress): void {
  withFolder(aside, (from) =>
    withFolder(home, (to) => {
      for (const { name } of entriesOf(from)) move(name, from, to);
    }),
  );
  rmdirSync(aside);
  rmSync(noteIn(home));
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
  rmSync(noteIn(home), { force: true });
  removeLeftovers(home);
}

const move = (name: string, from: Folder, to: Folder) => renameSync(from.entry(name), to.entry(name));

/** The folder that was made for what was there before, or a new one: another of its name is somebody else's. */
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
  writeFileAtomic(noteIn(home), JSON.stringify(progress), 0o600);
}

function read(home: string): Progress | undefined {
  try {
    return Progress.safeParse(JSON.parse(smallTextAt(noteIn(home)) ?? "")).data;
  } catch {
    // No restore was under way here.
    return undefined;
  }
}

function idOf(path: string): string {
  const { dev, ino } = lstatSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** Removes what restores that were killed have left, none of which took effect. */
export function removeLeftovers(home: string): void {
  const room = join(home, RESTORE_ROOM);
  // What is no number is a note that was not written to its end.
  const within = entriesAt(room).map(({ name }) => ({ path: join(room, name), owner: Number.parseInt(name, 10) || 0 }));
  const beside = leftBeside(home).filter(({ owner }) => owner > 0);
  for (const { path, owner } of [...within, ...beside])
    if (owner === 0 || !isAlive(owner)) rmSync(path, { recursive: true, force: true });
  leaveRoom(home);
}

/** Another restore may still unpack there. */
function leaveRoom(home: string): void {
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
    // No restore could have written there either; whoever needs the home says what is wrong with the place.
    return [];
  }
}
