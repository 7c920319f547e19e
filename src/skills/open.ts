import { lstatSync, mkdirSync, realpathSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Git } from "../git/command.ts";
import { nearest } from "../home/config.ts";
import { conflict, messageOf, missing, UserError, usageError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { syncFolder } from "../lib/pinned/write.ts";
import { removeTree } from "../process/remove-tree.ts";
import type { Emit } from "../protocol/events.ts";
import type { FoundSkill, Skill } from "../protocol/skills.ts";
import { whenFree } from "../store/open.ts";
import type { SkillSwitches } from "../store/skills.ts";
import { inspect } from "./inspect.ts";
import { installSkills, workFolder } from "./install.ts";
import { bodyOf } from "./manifest.ts";
import { parseOrigin } from "./origin.ts";
import { RECORD, wasOn } from "./record.ts";
import { searchRegistry } from "./registry.ts";
import { createScanner, type Scanner, type SkillFolder, SLUG } from "./scan.ts";
import { createSnapshots } from "./snapshot.ts";

export interface SkillsDeps {
  /** The folder with a folder for each skill. */
  root: string;
  /** A folder that no command sees, on the same disk. */
  scratch: string;
  /** Which skills are on. */
  switches: SkillSwitches;
  emit: Emit;
  log: Log;
  /** The registry's address, read at each search. */
  registry: () => string;
  git: Git;
  limits?: { maxBytes?: number; maxFiles?: number; cloneMs?: number; searchMs?: number };
  now?: () => Date;
}

export interface AddOptions {
  /** Switch it on at once: only if a person asked for it. */
  enable?: boolean;
  /** Whether a local folder may be cloned: only if a person named it. */
  local?: boolean;
  signal?: AbortSignal;
}

/** A skill that is on, its folder, and the content of its `agents` folder. */
export type ActiveSkill = Skill & Pick<SkillFolder, "folder" | "agents">;

export interface Skills {
  list(): Skill[];
  find(slug: string): Skill;
  /** The text of a skill's `SKILL.md`, to be read before it is switched on. */
  read(slug: string): string;
  /** A skill as it is now, inspected again. */
  show(slug: string): Promise<{ skill: Skill; text: string }>;
  /** The skills that a model may use now. */
  active(): ActiveSkill[];
  /** One of them with the text below its front matter, by its slug, or by its name if that is unique. */
  use(name: string): Pick<ActiveSkill, "slug" | "folder" | "agents"> & { text: string };
  /** Installs every skill of a repository, all of them or none. */
  add(url: string, options?: AddOptions): Promise<Skill[]>;
  /** Switches a skill on as it is now; given the `hash` that a person was shown, only if it is unchanged. */
  enable(slug: string, hash?: string): Skill;
  disable(slug: string): Skill;
  remove(slug: string): Skill;
  search(query: string, signal?: AbortSignal): Promise<FoundSkill[]>;
}

/** Where earlier versions kept copies of skills. */
const COPIES = ".native";
const UNFINISHED = /^(?:\.(?:staging|trash)|clone|trash)-[0-9a-f]{12}$/;

/** The skills of one folder. The next call sees changes made there by hand. */
export function openSkills(deps: SkillsDeps): Skills {
  const { switches, emit, log, registry, git, limits = {}, now = () => new Date() } = deps;
  const sizes = { maxBytes: 50_000_000, maxFiles: 5_000, cloneMs: 120_000, ...limits };
  const [root, scratch] = [deps.root, deps.scratch].map(realFolder) as [string, string];
  for (const folder of [root, scratch]) sweep(folder, now().getTime());
  const scanner = createScanner({ root, switches, snapshot: createSnapshots(sizes) });
  // Another program may hold the database right now.
  void whenFree(() => adoptEarlierSwitches({ root, scanner, switches, log, now })).catch((error: unknown) =>
    log.error("skills that were on before could not be taken over", { error }),
  );

  const place = (slug: string): SkillFolder => {
    const places = scanner.folders();
    const slugs = places.map(({ skill }) => skill.slug);
    const found = places[slugs.indexOf(slug)];
    if (found) return found;
    throw unknown(slug, slugs, `No skill is called "${slug.slice(0, 80)}".`);
  };

  const enable = (slug: string, shown?: string): Skill => {
    const { skill } = place(slug);
    const { hash } = skill;
    if (hash === null) throw conflict(`${slug}: ${skill.warnings[0]?.text ?? "it cannot be switched on"}. Then try again.`);
    if (shown !== undefined && shown !== hash)
      throw conflict(`${slug} changed since it was shown. Look at it again with "io skill show ${slug}".`);
    switches.switchOn({ slug, hash, enabledAt: now().toISOString(), by: "a person" });
    return { ...skill, enabled: true, changed: false };
  };

  return {
    list: () => scanner.folders().map(({ skill }) => skill),
    find: (slug) => place(slug).skill,
    read: (slug) => place(slug).text,
    async show(slug) {
      const { skill, text, folder, files } = place(slug);
      const found = await inspect(
        folder,
        files.filter((file) => file !== RECORD),
      );
      const warnings = [...skill.warnings.filter(({ file }) => file === "."), ...found.filter(({ file }) => file !== ".")];
      return { text, skill: { ...skill, warnings } };
    },
    active() {
      try {
        return scanner.active().map(({ skill, folder, agents }) => ({ ...skill, folder, agents }));
      } catch (error) {
        // An unreadable folder disables the skills, not the conversation.
        log.warn("the skills cannot be used", { error: messageOf(error) });
        return [];
      }
    },
    use(name) {
      const on = scanner.active();
      const slugs = on.map(({ skill }) => skill.slug);
      const named = on.filter(({ skill }) => skill.name === name);
      const found = on[slugs.indexOf(name)] ?? (named.length === 1 ? named[0] : undefined);
      if (found) return { slug: found.skill.slug, folder: found.folder, agents: found.agents, text: bodyOf(found.text) };
      const off = scanner.folders().find(({ skill }) => !skill.enabled && [skill.slug, skill.name].includes(name))?.skill;
      throw unknown(name, slugs, off === undefined ? "No single skill that is on goes by this name." : whyOff(off));
    },

    async add(url, { enable: on = false, local = false, signal } = {}) {
      const origin = parseOrigin(url, { local });
      const { slugs, commit } = await installSkills(origin, signal, { root, scratch, git, limits: sizes, now });
      // A skill of the same name, removed by hand, may have left its switch on.
      for (const slug of slugs) switches.switchOff(slug);
      const installed = slugs.map((slug) => (on ? enable(slug) : place(slug).skill));
      for (const { slug, name } of installed) emit({ type: "skill.installed", data: { slug, name } });
      log.info("skills installed", { url: origin.shown, commit, slugs, enabled: on });
      return installed;
    },

    enable,
    disable(slug) {
      const { skill } = place(slug);
      switches.switchOff(slug);
      return { ...skill, enabled: false, changed: false };
    },

    remove(slug) {
      if (!SLUG.test(slug)) throw missing(`"${slug.slice(0, 80)}" is not the name of a skill. "io skill list" shows the names.`);
      const { skill, linked, folder } = place(slug);
      switches.switchOff(slug);
      if (linked) unlink(root, slug);
      else discard({ root, scratch, slug, folder });
      withFolder(root, syncFolder);
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

function realFolder(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return realpathSync(path);
}

/** Takes over the skills that were on in an earlier version, which kept the switch beside them: once, as they are now. */
function adoptEarlierSwitches({
  root,
  scanner,
  switches,
  log,
  now,
}: Pick<SkillsDeps, "root" | "switches" | "log"> & { scanner: Scanner; now: () => Date }) {
  const on = switches.takeOver(() =>
    scanner.folders().flatMap(({ skill: { slug, hash }, linked }) => {
      if (hash === null || !wasOn(root, slug, linked)) return [];
      return [{ slug, hash, enabledAt: now().toISOString(), by: "an earlier version" as const }];
    }),
  );
  if (on.length > 0) log.info("skills that were on before stay on, as they are now", { slugs: on.map(({ slug }) => slug) });
}

function whyOff({ slug, changed }: Skill): string {
  const help = `the user can switch it on with: io skill enable ${slug}`;
  return changed
    ? `The skill ${slug} is off: it changed since it was switched on; ${help}.`
    : `The skill ${slug} is off; ${help}.`;
}

function unlink(root: string, slug: string): void {
  unlinkSync(join(root, slug));
  rmSync(join(root, `.${slug}${RECORD}`), { force: true });
}

/** Moved aside first, so that an interrupted removal leaves no partial skill. */
function discard({ root, scratch, slug, folder }: Record<"root" | "scratch" | "slug" | "folder", string>): void {
  if (dirname(folder) !== root || basename(folder) !== slug)
    throw new UserError(`The skill "${slug}" does not lie in the skills folder. Nothing was removed.`);
  const trash = workFolder(scratch, "trash");
  renameSync(join(root, slug), join(trash, slug));
  // Nobody waits for the removal, however many folders there are; a later start sweeps what is left.
  removeTree(trash).catch(() => undefined);
}

function unknown(name: string, slugs: readonly string[], why: string): UserError {
  const near = nearest(name, slugs);
  const there = slugs.length === 0 ? "There are none." : `There are: ${slugs.slice(0, 50).join(", ")}.`;
  return missing(`${why}${near ? ` Did you mean "${near}"?` : ""} ${there}`);
}

/** Removes what an earlier version, or a killed installation or removal, left, once nobody can be working in it. */
function sweep(folder: string, now: number): void {
  for (const { name } of entriesAt(folder)) {
    if (!UNFINISHED.test(name) && name !== COPIES) continue;
    const path = join(folder, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (name === COPIES || (stat && now - stat.mtimeMs > 3_600_000)) rmSync(path, { recursive: true, force: true });
  }
}
