import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { syncFolder, writeFileAtomic } from "../lib/atomic.ts";
import { nearest } from "../lib/config.ts";
import { codeOf, conflict, messageOf, missing, UserError, usageError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { unwrapped, type Wrap } from "../process/sandbox.ts";
import type { Emit } from "../protocol/events.ts";
import type { FoundSkill, Skill } from "../protocol/skills.ts";
import { clone } from "./clone.ts";
import { type Candidate, collectSkills, copySkill, leftOutWarning } from "./collect.ts";
import { inspect } from "./inspect.ts";
import { bodyOf, readHead } from "./manifest.ts";
import { parseOrigin } from "./origin.ts";
import { searchRegistry } from "./registry.ts";
import { createScanner, type Place, RECORD, recordPath, type SkillRecord, SLUG } from "./scan.ts";

export interface SkillsDeps {
  /** The folder that holds a folder for each skill. */
  root: string;
  emit: Emit;
  log: Log;
  /** The registry's address, asked at each search. */
  registry: () => string;
  /** Keeps git, whose settings a model could have written, from what a model may not see. */
  wrap?: Wrap;
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
export function openSkills({
  root,
  emit,
  log,
  registry,
  wrap = unwrapped,
  limits = {},
  now = () => new Date(),
}: SkillsDeps): Skills {
  const { maxBytes = 50_000_000, maxFiles = 5_000, cloneMs = 120_000, searchMs = 10_000 } = limits;
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

  const refuseTaken = (candidates: readonly Candidate[]) => {
    const taken = candidates.filter(({ slug }) => lstatSync(join(root, slug), { throwIfNoEntry: false }) !== undefined);
    if (taken.length === 0) return;
    const names = taken.map(({ slug }) => slug).join(", ");
    throw conflict(
      `Already installed: ${names}. To replace it, first remove it with "io skill remove ${taken[0]!.slug}". Nothing was changed.`,
    );
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
      const staging = join(root, `.staging-${randomBytes(6).toString("hex")}`);
      mkdirSync(staging, { mode: 0o700 });
      try {
        const commit = await clone(origin, join(staging, ".clone"), { deadlineMs: cloneMs, maxBytes }, wrap, signal);
        const { candidates, leftOut } = collectSkills(join(staging, ".clone"), origin.name, { maxBytes, maxFiles });
        refuseTaken(candidates);
        for (const candidate of candidates) {
          const ready = join(staging, candidate.slug);
          copySkill(candidate, ready);
          const warnings = await inspect(ready, [...candidate.files.keys()].sort());
          if (leftOut.length > 0 && candidate === candidates.at(-1)) warnings.unshift(leftOutWarning(leftOut));
          const record = { url: origin.shown, commit, installedAt: now().toISOString(), enabled: enable, warnings };
          writeFileSync(join(ready, RECORD), recordText(record), { mode: 0o600, flag: "wx" });
        }
        moveIn(root, staging, candidates);
        const installed = candidates.map(({ slug }) => place(slug).skill);
        for (const { slug, name } of installed) emit({ type: "skill.installed", data: { slug, name } });
        log.info("skills installed", { url: origin.shown, commit, slugs: installed.map(({ slug }) => slug), enabled: enable });
        return installed;
      } finally {
        rmSync(staging, { recursive: true, force: true });
      }
    },

    enable: (slug) => switchTo(slug, true),
    disable: (slug) => switchTo(slug, false),

    remove(slug) {
      if (!SLUG.test(slug)) throw missing(`"${slug.slice(0, 80)}" is not the name of a skill. "io skill list" shows the names.`);
      const { skill, linked, folder } = place(slug);
      const path = join(root, slug);
      if (linked) {
        unlinkSync(path);
        rmSync(recordPath(root, slug, true), { force: true });
      } else {
        if (folder !== join(realpathSync(root), slug))
          throw new UserError(`The skill "${slug}" does not lie in the skills folder. Nothing was removed.`);
        const trash = join(root, `.trash-${randomBytes(6).toString("hex")}`);
        renameSync(path, trash);
        rmSync(trash, { recursive: true, force: true });
      }
      syncFolder(root);
      emit({ type: "skill.removed", data: { slug, name: skill.name } });
      log.info("skill removed", { slug });
      return skill;
    },

    async search(query, signal) {
      const asked = query.trim();
      if (asked === "") throw usageError("Say what kind of skill to search for.");
      return searchRegistry(registry(), asked.slice(0, 200), searchMs, signal);
    },
  };
}

function unknown(name: string, slugs: readonly string[], why: string): UserError {
  const near = nearest(name, slugs);
  const there = slugs.length === 0 ? "There are none." : `There are: ${slugs.slice(0, 50).join(", ")}.`;
  return missing(`${why}${near ? ` Did you mean "${near}"?` : ""} ${there}`);
}

function recordText(record: SkillRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`;
}

/** Renames every prepared skill into place; if one cannot be, those before it are taken out again. */
function moveIn(root: string, staging: string, candidates: readonly Candidate[]): void {
  const moved: string[] = [];
  try {
    for (const { slug } of candidates) {
      renameSync(join(staging, slug), join(root, slug));
      moved.push(slug);
    }
    syncFolder(root);
  } catch (error) {
    for (const slug of moved) rmSync(join(root, slug), { recursive: true, force: true });
    if (["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(codeOf(error) ?? "")) {
      throw new UserError(
        'A skill of the same name was installed at the same moment. Nothing was changed; look at "io skill list".',
        { cause: error },
      );
    }
    throw error;
  }
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
