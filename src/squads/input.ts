import { realpathSync, statSync } from "node:fs";
import { refuseDataFolder } from "../home/data-folder.ts";
import { codeOf, UserError } from "../lib/errors.ts";
import { named, quoted } from "../lib/quoted.ts";
import { locate } from "../lib/real-path.ts";
import { withoutEnd } from "../lib/trim.ts";
import { refuseSystemFolder } from "../project/roots.ts";
import { SquadSlug } from "../protocol/squads.ts";

/** The most characters, or agents, that are accepted. */
export const MAX = { name: 100, roleTitle: 100, charter: 8_000, decision: 2_000, context: 4_000, task: 20_000, agents: 100 };

/** Trims a text; refuses an empty or too long one, with help. */
export function required(what: string, text: string, max: number, help = ""): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new UserError(`${what} is empty. ${help || "Say it in a few words."}`);
  return limited(what, trimmed, max, help);
}

/** Refuses a text that is too long. */
export function limited(what: string, text: string, max: number, help = "Make it shorter."): string {
  if (text.length > max)
    throw new UserError(`${what} has ${text.length} characters; at most ${max} are taken. ${help || "Make it shorter."}`);
  return text;
}

/** The real path of an existing folder that is unrelated to the data folder. */
export function folderAt(path: string, cwd: string | undefined, dataFolder?: string): string {
  if (cwd === undefined && !/^(?:\/|~(?:\/|$)|[A-Za-z]:[\\/])/.test(path))
    throw new UserError(
      `${named(path, 200)}: is not a whole path. Give the path of the project's folder from the root, such as /home/me/app.`,
    );
  try {
    const real = realpathSync(locate(path, cwd ?? "/"));
    if (statSync(real).isDirectory()) {
      if (dataFolder !== undefined) refuseDataFolder(dataFolder, real);
      refuseSystemFolder(real);
      return real;
    }
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"].includes(codeOf(error) ?? ""))
      throw error;
    throw new UserError(
      `${named(path, 200)}: there is no such folder, or it may not be read. Give the path of a project's folder.`,
      { cause: error },
    );
  }
  throw new UserError(`${named(path, 200)}: is not a folder. Give the path of a project's folder.`);
}

/** Checks a slug that somebody chose. */
export function checkedSlug(slug: string): string {
  if (SquadSlug.safeParse(slug).success) return slug;
  const better = slugOf(slug.slice(0, 200));
  throw new UserError(
    `${quoted(slug, 100)} cannot be a slug: use 1 to 63 lower-case letters, digits or dashes.${better ? ` "${better}" would do.` : ""}`,
  );
}

/** Makes a slug from a name: "My App (v2)" becomes my-app-v2. */
export function slugOf(name: string): string {
  const slug = name
    .slice(0, 1_000)
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 60)
    .replace(/^-+/, "");
  return withoutEnd(slug, "-");
}

/** The slug, with a number appended if it is taken. */
export function freeSlug(wanted: string, isTaken: (slug: string) => boolean): string {
  for (let copy = 1; ; copy += 1) {
    const slug = copy === 1 ? wanted : `${wanted}-${copy}`;
    if (!isTaken(slug)) return slug;
  }
}

/** Whether two tasks ask for the same, apart from case, spacing and final punctuation. */
export function isSameTask(a: string, b: string): boolean {
  const normal = (text: string) => withoutEnd(text.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim(), ".! ");
  return normal(a) === normal(b);
}
