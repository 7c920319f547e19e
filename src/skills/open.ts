import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { syncFolder, writeFileAtomic } from "../lib/atomic.ts";
import { nearest } from "../lib/config.ts";
import { messageOf, missing, UserError, usageError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Emit } from "../protocol/events.ts";
import type { FoundSkill, Skill } from "../protocol/skills.ts";
import { installSkills } from "./install.ts";
import { bodyOf, readHead } from "./manifest.ts";
import { parseOrigin } from "./origin.ts";
import { searchRegistry } from "./registry.ts";
import { createScanner, type Place, recordPath, recordText, SLUG } from "./scan.ts";

export interface SkillsDeps {
  /** The folder that holds a folder for each skill. */
  root: string;
  emit: Emit;
  log: Log;
  /** The registry's address, asked at each search. */
  registry: () => string;
  git: Git;
  limits?: { maxBytes?: number; maxFiles?: number; cloneMs?: number; searchMs?: number };
  now?: () => Date;
}

export interface AddOptions {
  /** Switched on at once: only when a person asked for it. */
  enable?: boolean;
  /** Whether a folder of this machine may be cloned: only when a person gave it. */
  local?: boolean;
  signal?: AbortSignal;
}

export interface Skills {
  list(): Skill[];
  find(slug: string): Skill;
  /** The text of a skill's `SKILL.md`, so that it can be read before it is switched on. */
  read(slug: string): string;
  /** The skills that a model may use now. */
  active(): Skill[];
  /** One of them with the text below its front matter, by its slug, or by its name if no other has that. */
  use(name: string): { slug: string; text: string; folder: string };
  /** Installs every skill of a repository, all of them or none. */
  add(url: string, options?: AddOptions): Promise<Skill[]>;
  enable(slug: string): Skill;
  disable(slug: string): Skill;
  remove(slug: string): Skill;
  search(query: string, signal?: AbortSignal): Promise<FoundSkill[]>;
}

/** Where earlier versions kept copies of skills. */
const COPIES = ".native";
const HIDDEN_WORK = /^\.(?:staging|trash)-[0-9a-f]{12}$/;

/** The skills of one folder. What was changed there by hand is seen at the next call. */
export function openSkills({ root, emit, log, registry, git, limits = {}, now = () => new Date() }: SkillsDeps): Skills {
  const sizes = { maxBytes: 50_000_000, maxFiles: 5_000, cloneMs: 120_000, ...limits };
  mkdirSync(root, { recursive: true, mode: 0o700 });
  sweep(root, now().getTime());
  const scanner = createScanner(root);

  const place = (slug: string): Place => {
    const places = scanner.places();
    const slugs = places.map(({ skill }) => skill.slug);
    const found = places[slugs.indexOf(slug)];
    if (found) return found;
    throw unknown(slug, slugs, `No skill is called "${slug.slice(0, 80)}".`);
  };

  const switchTo = (slug: string, enabled: boolean): Skill => {
    const { skill, linked } = place(slug);
    const { url, commit, installedAt, warnings } = skill;
    writeFileAtomic(recordPath(root, slug, linked), recordText({ url, commit, installedAt, enabled, warnings }));
    return { ...skill, enabled };
  };

  return {
    list: () => scanner.places().map(({ skill }) => skill),
    find: (slug) => place(slug).skill,
    read: (slug) => readHead(join(place(slug).folder, "SKILL.md")),
    active() {
      try {
        return scanner.active().map(({ skill }) => skill);
      } catch (error) {
        // A folder that cannot be read costs the skills, not the conversation.
        log.warn("the skills cannot be used", { error: messageOf(error) });
        return [];
      }
    },
    use(name) {
      const on = scanner.active();
      const slugs = on.map(({ skill }) => skill.slug);
      const named = on.filter(({ skill }) => skill.name === name);
      const found = on[slugs.indexOf(name)] ?? (named.length === 1 ? named[0] : undefined);
      if (found) return { slug: found.skill.slug, folder: found.folder, text: bodyOf(readHead(join(found.folder, "SKILL.md"))) };
      const off = scanner.places().find(({ skill }) => !skill.enabled && [skill.slug, skill.name].includes(name))?.skill.slug;
      const help = `The skill ${off} is off; the user can switch it on with: io skill enable ${off}.`;
      throw unknown(name, slugs, off === undefined ? "No single skill that is on goes by this name." : help);
    },

    async add(url, { enable = false, local = false, signal } = {}) {
      const origin = parseOrigin(url, { local });
      const { slugs, commit } = await installSkills(origin, { enable, signal }, { root, git, limits: sizes, now });
      const installed = slugs.map((slug) => place(slug).skill);
      for (const { slug, name } of installed) emit({ type: "skill.installed", data: { slug, name } });
      log.info("skills installed", { url: origin.shown, commit, slugs, enabled: enable });
      return installed;
    },

    enable: (slug) => switchTo(slug, true),
    disable: (slug) => switchTo(slug, false),

    remove(slug) {
      if (!SLUG.test(slug)) throw missing(`"${slug.slice(0, 80)}" is not the name of a skill. "io skill list" shows the names.`);
      const { skill, linked, folder } = place(slug);
      if (linked) unlink(root, slug);
      else discard(root, slug, folder);
      syncFolder(root);
      emit({ type: "skill.removed", data: { slug, name: skill.name } });
      log.info("skill removed", { slug });
      return skill;
    },

    async search(query, signal) {
      const asked = query.trim();
      if (asked === "") throw usageError("Say what kind of skill to search for.");
      return searchRegistry(registry(), asked.slice(0, 200), limits.searchMs ?? 10_000, signal);
    },
  };
}

function unlink(root: string, slug: string): void {
  unlinkSync(join(root, slug));
  rmSync(recordPath(root, slug, true), { force: true });
}

/** Moved aside first, so that what is cut off half-way leaves no half of a skill. */
function discard(root: string, slug: string, folder: string): void {
  if (folder !== join(realpathSync(root), slug))
    throw new UserError(`The skill "${slug}" does not lie in the skills folder. Nothing was removed.`);
  const trash = join(root, `.trash-${randomBytes(6).toString("hex")}`);
  renameSync(join(root, slug), trash);
  rmSync(trash, { recursive: true, force: true });
}

function unknown(name: string, slugs: readonly string[], why: string): UserError {
  const near = nearest(name, slugs);
  const there = slugs.length === 0 ? "There are none." : `There are: ${slugs.slice(0, 50).join(", ")}.`;
  return missing(`${why}${near ? ` Did you mean "${near}"?` : ""} ${there}`);
}

/** Takes away what an earlier version left, and what a killed installation or removal did, once nobody can be at work in it. */
function sweep(root: string, now: number): void {
  for (const name of readdirSync(root)) {
    if (!HIDDEN_WORK.test(name) && name !== COPIES) continue;
    const path = join(root, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (name === COPIES || (stat && now - stat.mtimeMs > 3_600_000)) rmSync(path, { recursive: true, force: true });
  }
}
