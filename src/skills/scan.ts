import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { codeOf, UserError } from "../lib/errors.ts";
import { type Skill, SkillWarning } from "../protocol/skills.ts";
import { parseManifest, readHead, type SkillManifest } from "./manifest.ts";

/** What IO keeps about a skill, beside the skill's own files. */
export const SkillRecord = z.object({
  url: z.string().nullable(),
  commit: z.string().nullable(),
  installedAt: z.string().nullable(),
  enabled: z.boolean(),
  warnings: z.array(SkillWarning),
});
export type SkillRecord = z.infer<typeof SkillRecord>;

export const RECORD = ".io-skill.json";
export const SLUG = /^[a-z0-9][a-z0-9._-]{0,63}$/i;

/** A skill and where it really lies. */
export interface Place {
  skill: Skill;
  folder: string;
  linked: boolean;
}

export interface Scanner {
  /** Every skill there is now, by slug. */
  places(): Place[];
  /** Those that are on, each followed by the skills in its `agents` folder as `<slug>/<folder>`. */
  active(): Place[];
}

/** Looks again at every call; a `SKILL.md` is read again only when it changed. */
export function createScanner(root: string): Scanner {
  const known = new Map<string, { stamp: string; manifest: SkillManifest }>();

  const manifestOf = (folder: string, slug: string) => {
    const path = join(folder, "SKILL.md");
    try {
      const stat = statSync(path);
      if (!stat.isFile()) return undefined;
      const stamp = `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
      const seen = known.get(folder);
      if (seen?.stamp === stamp) return seen.manifest;
      const manifest = parseManifest(readHead(path), slug);
      known.set(folder, { stamp, manifest });
      return manifest;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  };

  const placesIn = (parent: string): Place[] =>
    slugsIn(parent).flatMap((slug) => {
      const folder = realFolder(join(parent, slug));
      const manifest = folder === undefined ? undefined : manifestOf(folder, slug);
      if (folder === undefined || manifest === undefined) return [];
      const linked = lstatSync(join(parent, slug), { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
      return [{ folder, linked, skill: { slug, ...manifest, ...readRecord(recordPath(parent, slug, linked)) } }];
    });

  const withAgents = (place: Place): Place[] => {
    const agents = realFolder(join(place.folder, "agents"));
    const inner = agents === undefined ? [] : placesIn(agents);
    return [place, ...inner.map((one) => ({ ...one, skill: { ...one.skill, slug: `${place.skill.slug}/${one.skill.slug}` } }))];
  };

  return {
    places: () => placesIn(root),
    active: () =>
      placesIn(root)
        .filter(({ skill }) => skill.enabled)
        .flatMap(withAgents),
  };
}

/** A linked skill belongs to somebody else's folder, so its record stays in ours. */
export function recordPath(root: string, slug: string, linked: boolean): string {
  return linked ? join(root, `.${slug}${RECORD}`) : join(root, slug, RECORD);
}

/** A skill without a record was put there by hand, and is on. One whose record is unreadable is off. */
function readRecord(path: string): SkillRecord {
  const unknown = { url: null, commit: null, installedAt: null, warnings: [] };
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    return { ...unknown, enabled: codeOf(error) === "ENOENT" };
  }
  try {
    const record = SkillRecord.safeParse(JSON.parse(text));
    return record.success ? record.data : { ...unknown, enabled: false };
  } catch {
    // Not JSON, so nobody can say that a person switched it on.
    return { ...unknown, enabled: false };
  }
}

function slugsIn(root: string): string[] {
  try {
    return readdirSync(root)
      .filter((name) => SLUG.test(name))
      .sort();
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT") return [];
    throw new UserError(`The skills folder cannot be read (${code}). The user has to look at it: ${root}`, { cause: error });
  }
}

function realFolder(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Gone, a dangling or endless link, or not ours to read: no skill for us. */
function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EISDIR", "ENXIO"].includes(codeOf(error) ?? "");
}

/** A record as it is written beside a skill. */
export function recordText(record: SkillRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`;
}
