import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isAlive } from "../lib/alive.ts";
import { conflict } from "../lib/errors.ts";
import { realOf } from "../lib/real-path.ts";

/** Where a restore unpacks; half a home, until it has been checked to its last byte. */
export const unpackingAt = (home: string): string => `${home}.restoring-${process.pid}`;
/** Its name from then on: a whole home, which only has to be moved to its place. */
export const checkedAt = (home: string): string => `${home}.restored-${process.pid}`;
/** Where what was there before goes. */
export const asideAt = (home: string, time: Date): string =>
  `${home}.before-${time.toISOString().slice(0, 19).replace(/[-:]/g, "")}`;

/**
 * Finishes a restore that was killed after it had put the old home aside and before the new one stood in its place; says so.
 * Otherwise the next start would begin with an empty home.
 */
export function finishRestore(given: string): string | undefined {
  const home = realOf(given);
  if (existsSync(home)) return undefined;
  const [checked] = leftBeside(home, "restored");
  if (!checked) return undefined;
  if (isAlive(checked.owner))
    throw conflict(`A restore (pid ${checked.owner}) is just about to put ${home} in its place. Try again in a moment.`);
  renameSync(checked.path, home);
  const before = siblings(home, "before").sort().at(-1);
  return [
    `A restore of ${home} was interrupted at its last step; that is done now, and the backup is in place.`,
    ...(before === undefined ? [] : [`What was there before is in ${join(dirname(home), before)}.`]),
  ].join(" ");
}

/** Removes what restores that were killed have left, none of which took effect. */
export function removeLeftovers(home: string): void {
  for (const kind of ["restoring", "restored"] as const)
    for (const { path, owner } of leftBeside(home, kind)) if (!isAlive(owner)) rmSync(path, { recursive: true, force: true });
}

function leftBeside(home: string, kind: "restoring" | "restored"): { path: string; owner: number }[] {
  return siblings(home, kind)
    .map((name) => ({ path: join(dirname(home), name), owner: Number(name.slice(name.lastIndexOf("-") + 1)) }))
    .filter(({ owner }) => owner > 0);
}

function siblings(home: string, kind: string): string[] {
  try {
    return readdirSync(dirname(home)).filter((name) => name.startsWith(`${basename(home)}.${kind}-`));
  } catch {
    // No restore could have written there either; whoever needs the home says what is wrong with the place.
    return [];
  }
}
