import { createHash } from "node:crypto";
import type { Breath } from "../lib/breath.ts";
import type { ProjectCommand } from "../protocol/analysis.ts";
import type { CiCommands } from "./commands/ci.ts";
import { type Instructions, isBanned } from "./commands/instructions.ts";
import { ofDeno, ofNpm } from "./commands/javascript.ts";
import { ofGradle, ofMaven } from "./commands/jvm.ts";
import { isPerPackage, narrowed } from "./commands/narrow.ts";
import { ofAutotools, ofBazel, ofCargo, ofCmake, ofGo, ofSwift } from "./commands/native.ts";
import { ofDart, ofDotnet, ofElixir, ofPhp, ofRuby, ofSbt } from "./commands/others.ts";
import { ofPython } from "./commands/python.ts";
import { type CommandFinder, isWithin, type ProjectView, type Purpose, scopeOf } from "./commands/scope.ts";
import { coreOf, fromTaskFiles, fromTaskRunner, fromWorkspaces, ownTargets } from "./commands/task-files.ts";
import { fromTox } from "./commands/tox.ts";
import { ofUnpackaged } from "./commands/unpackaged.ts";
import { fixesFiles, type WrittenCommand } from "./commands/written.ts";
import type { PackageManifest } from "./manifests/manifest.ts";

const PURPOSES = ["test", "lint", "build"] as const;
const MAX_NESTED = 20;
/** The most commands a project is checked with, and the most for each purpose that come from its CI. */
const MOST = 6;
const MOST_OF_CI = { test: 3, lint: 4, build: 1 };
/** Cheap commands come first. */
const BY_COST = ["lint", "build", "test"] as const;

/** A command that tells whether work is sound; a shell runs it in `cwd`, a folder relative to the project. */
export interface Check {
  name: string;
  command: string;
  cwd: string;
  /** The file in which it was found; missing if none names it. */
  from?: string;
  /** Set if it covers only some packages, or could be narrowed to some: which ones depends on the changes. */
  isPerPackage?: true;
  /** The folders of the packages that it covers. */
  packages?: string[];
}

/** A command, and the packages it was narrowed to. */
export interface PlannedCommand extends ProjectCommand {
  packages?: string[];
  isPerPackage?: true;
}

/** The project's own checks, the cheapest first. */
export function findChecks({ commands }: { commands: readonly PlannedCommand[] }): Check[] {
  const found = BY_COST.flatMap((purpose) =>
    commands
      .filter((one) => one.purpose === purpose)
      .map(({ command, cwd, from, isGuess, packages, isPerPackage }) => {
        const where = packages ?? (cwd === "." ? [] : [cwd]);
        const name = where.length === 0 ? purpose : `${purpose} (${inShort(where)})`;
        return { name, command, cwd, ...(!isGuess && { from }), ...(isPerPackage && { isPerPackage, packages: where }) };
      }),
  );
  const isAlone = ({ name }: Check) => found.filter((each) => each.name === name).length === 1;
  return found.map((check) => (isAlone(check) ? check : { ...check, name: `${check.name}: ${clipped(check.command)}` }));
}

const clipped = (command: string) => (command.length > LONGEST_NAMED ? `${command.slice(0, LONGEST_NAMED - 1)}…` : command);
const LONGEST_NAMED = 60;

const MOST_NAMED = 4;

/** A short label for some packages, different for every list. */
function inShort(packages: readonly string[]): string {
  if (packages.length <= MOST_NAMED + 1) return packages.join(", ");
  const mark = createHash("sha256").update(JSON.stringify(packages)).digest("hex").slice(0, 6);
  return `${packages.slice(0, MOST_NAMED).join(", ")} and ${packages.length - MOST_NAMED} more, ${mark}`;
}

const FINDERS: Readonly<Record<string, CommandFinder>> = {
  npm: ofNpm,
  deno: ofDeno,
  cargo: ofCargo,
  go: ofGo,
  python: ofPython,
  maven: ofMaven,
  gradle: ofGradle,
  sbt: ofSbt,
  dotnet: ofDotnet,
  ruby: ofRuby,
  php: ofPhp,
  elixir: ofElixir,
  dart: ofDart,
  cmake: ofCmake,
  swift: ofSwift,
};
/** Kinds that build the same code: in one folder only the first of them counts. */
const RIVALS: readonly (readonly string[])[] = [
  ["maven", "gradle"],
  ["cmake", "swift"],
];
/** Kinds whose commands follow from the tool, not from what the project wrote down. */
const BY_CONVENTION = new Set(["cargo", "go", "maven", "gradle", "sbt", "python", "ruby", "cmake", "elixir", "dart"]);

/** Commands that people wrote down: in the instructions for agents, and in CI. */
export interface Written extends Instructions {
  ci: CiCommands;
}

/**
 * At most a handful of commands that test, lint and build: from the project's instructions first, then its CI, then the rest; and
 * how many did not fit. If the CI runs only tests, adds lint scripts and whatever CI runs in an unreadable form.
 */
export async function commandsOf(
  view: ProjectView,
  { commands, banned, ci }: Written,
  { breathe, affected }: { breathe: Breath; affected?: ReadonlySet<string> | undefined },
): Promise<{ planned: PlannedCommand[]; leftOut: number }> {
  const found = await fromFiles(view, breathe, affected ? undefined : MAX_NESTED);
  const tox = broadestCommands(fromTox(view));
  const isInTox = (one: ProjectCommand) =>
    tox.some(({ purpose, plain }) => purpose === one.purpose && (purpose === "test" || coreOf(plain) === coreOf(one.command)));
  const withTox: OwnCommand[] = [...tox, ...found.filter((one) => !isInTox(one))];
  const allowed = <T extends ProjectCommand>(from: readonly T[], purpose: Purpose) =>
    from.filter((one) => one.purpose === purpose && !isBanned("plain" in one ? String(one.plain) : one.command, banned));
  const inCi = PURPOSES.map((purpose) =>
    broadestCommands(allowed(ci.commands, purpose).filter(({ plain }) => !isRival(plain, view))),
  );
  const isDirect = (one: WrittenCommand) => !one.isDriver && !isNarrow(one);
  const isWhole = inCi[PURPOSES.indexOf("test")]!.some(isDirect);
  const concerns = (one: ProjectCommand) => !affected || narrowed(one, view, affected) !== undefined;
  const chosen = PURPOSES.map((purpose, index): ProjectCommand[] => {
    const most = MOST_OF_CI[purpose];
    const direct = inCi[index]!.filter(isDirect).sort((a, b) => narrownessOf(a) - narrownessOf(b));
    const wanted = broadestCommands(allowed(commands, purpose));
    // Instructions tell people how to fix lint findings; a check should only look, as CI does.
    const onlyLooks = purpose === "lint" && direct.length > 0 ? wanted.filter(({ plain }) => !fixesFiles(plain, view)) : wanted;
    const asked = onlyLooks.slice(0, purpose === "lint" ? 2 : 1);
    if (asked.length > 0) return asked;
    const own = allowed(withTox, purpose);
    const unread = own.filter((one) => isUnread(one.command, ci));
    const hooks = inCi[index]!.filter(({ plain }) => runsHooks(plain));
    const isOther = (one: ProjectCommand) => !direct.some(({ plain }) => coreOf(plain) === coreOf(one.command));
    const throughHooks = hooks.length === 0 ? [] : own.length > 0 ? own.filter(isOther) : hooks;
    if (direct.length > 0) return unique([...direct.filter(concerns).slice(0, most), ...unread, ...throughHooks]).slice(0, most);
    if (isWhole && !inCi[index]!.some(({ isDriver }) => isDriver))
      return own.filter((one) => unread.includes(one) || (purpose === "lint" && !one.isUsual));
    return own.every(({ isGuess }) => isGuess) && inCi[index]!.length > 0 ? inCi[index]!.slice(0, most) : own;
  });
  const planned = chosen.map((list) =>
    list.flatMap(({ purpose, command, cwd, from, isGuess }): PlannedCommand[] => {
      const whole = { ...{ purpose, command, cwd, from }, ...(isGuess && { isGuess }) };
      const part = affected ? narrowed(whole, view, affected) : whole;
      return part ? [{ ...part, ...(isPerPackage(whole, view) && { isPerPackage: true as const }) }] : [];
    }),
  );
  // A change that concerns no package still has to be checked.
  if (affected && planned.every((list) => list.length === 0)) return commandsOf(view, { commands, banned, ci }, { breathe });
  const taken = affected ? testsFirst(planned.flat(), [...affected]) : takeInTurn(planned);
  return { planned: taken, leftOut: planned.flat().length - taken.length };
}

/** Whether CI runs a tool, but only in lines that could not be read. */
function isUnread(command: string, { commands, unread }: CiCommands): boolean {
  const core = coreOf(command);
  return unread.some((line) => line.includes(core)) && !commands.some(({ plain }) => plain.includes(core));
}

/** Words that narrow a command: options, and a task of a single Gradle project. */
const NARROW =
  /^(?:-p|--package|--manifest-path|--lib|--bin|--doc|--test|-k|--no-default-features|--target|-run|--filter|-pl|--projects|--activate-profiles)(?:=|$)|^:\w/;
/** The manifest at the top stands for the whole. */
const TOP_MANIFEST = / --manifest-path(?:=| )(?:\.\/)?Cargo\.toml(?= |$)/;
const isNarrow = ({ plain }: WrittenCommand) =>
  plain
    .replace(TOP_MANIFEST, "")
    .split(" ")
    .some((word) => NARROW.test(word));

/** Whether a command runs pre-commit hooks, whose linters may also be known from the project's files. */
const runsHooks = (plain: string) => /\bpre-commit run\b/.test(plain);

/**
 * Of commands that differ only in their options, the first that covers the most; if that is for some features of a crate, also
 * the first for other features.
 */
function broadestCommands(commands: readonly WrittenCommand[]): WrittenCommand[] {
  const groups = new Map<string, WrittenCommand[]>();
  for (const one of commands) {
    const words = one.plain
      .replaceAll(QUOTED_VALUE, "")
      .split(" ")
      .filter((word) => word !== "" && !ASSIGNMENT.test(word) && !EVERYTHING.test(word));
    const end = words.findIndex((word) => word.startsWith("-"));
    const key = `${one.cwd}\0${(end < 0 ? words : words.slice(0, end)).join(" ")}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first, ...rest] = group.sort((a, b) => narrownessOf(a) - narrownessOf(b));
    const features = featuresOf(first!);
    const isOther = (one: WrittenCommand) => narrownessOf(one) === narrownessOf(first!) && featuresOf(one) !== features;
    return features === undefined ? [first!] : [first!, ...rest.filter(isOther).slice(0, 1)];
  });
}

const featuresOf = ({ plain }: WrittenCommand) => / --features[= ](\S+)/.exec(plain)?.[1];
const QUOTED_VALUE = / \w{1,60}='[^']*'/g;
const ASSIGNMENT = /^\w+=/;
/** The whole project, as Go and linters name it. */
const EVERYTHING = /^\.(?:\/\.\.\.|\/)?$/;
/** How far a command is from the plain one that checks everything. */
const narrownessOf = (one: WrittenCommand) =>
  (isNarrow(one) ? 4 : 0) + (/ --features\b/.test(one.command) ? 2 : 0) + (ASSIGNMENT.test(one.command) ? 1 : 0);

/** Whether a command is Gradle's in a project that uses Maven. */
const isRival = (command: string, { manifests }: ProjectView) =>
  /^(?:\.\/)?gradlew? /.test(command) && manifests.some(({ kind, folder }) => kind === "maven" && folder === ".");

/** If not all fit: tests before the rest, and changed packages before their dependants. */
function testsFirst(planned: readonly PlannedCommand[], affected: readonly string[]): PlannedCommand[] {
  const rank = ({ purpose, cwd }: PlannedCommand) => PURPOSES.indexOf(purpose) * affected.length + affected.indexOf(cwd);
  const taken = new Set([...planned].sort((a, b) => rank(a) - rank(b)).slice(0, MOST));
  return planned.filter((one) => taken.has(one));
}

/** As many of each list as fit, taken in turn. */
function takeInTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const taken = lists.map((): T[] => []);
  for (let round = 0, left = MOST; left > 0 && lists.some((list) => list.length > round); round += 1)
    for (const [index, list] of lists.entries())
      if (left > 0 && list.length > round) {
        taken[index]!.push(list[round]!);
        left -= 1;
      }
  return taken.flat();
}

/** Commands from task files and manifests: the root's own if it has any, else those of the packages below. */
async function fromFiles(view: ProjectView, breathe: Breath, mostNested: number | undefined): Promise<OwnCommand[]> {
  const all: FoundCommand[] = [];
  for (const manifest of view.manifests) {
    if (!isSuperseded(manifest, view)) all.push(...ofPackage(manifest, view));
    await breathe();
  }
  const own = ownTargets(view, all);
  const perEcosystem = PURPOSES.flatMap((purpose) =>
    kindsOf(all, view).flatMap((kind) => {
      if (BY_CONVENTION.has(kind) && own.some((one) => one.purpose === purpose)) return [];
      const mine = all.filter((one) => one.purpose === purpose && one.kind === kind);
      const rooted = mine.filter(({ cwd }) => cwd === ".");
      if (rooted.length > 0) return rooted;
      const runner =
        kind === "npm" && mine.length > 1 ? (fromTaskRunner(view, purpose) ?? fromWorkspaces(view, purpose)) : undefined;
      return runner ? [{ ...runner, kind }] : mine.filter((one) => !isCovered(one, mine, view)).slice(0, mostNested);
    }),
  ).map(({ kind, ...command }): OwnCommand => ({ ...command, isUsual: BY_CONVENTION.has(kind) }));
  const replaces = (one: ProjectCommand) => all.some(({ kind, purpose }) => BY_CONVENTION.has(kind) && purpose === one.purpose);
  const found = unique<OwnCommand>([...own.filter(replaces), ...perEcosystem]);
  const missing = (from: readonly ProjectCommand[]) => PURPOSES.filter((purpose) => !from.some((one) => one.purpose === purpose));
  const runner = missing(found).flatMap((purpose) => fromTaskRunner(view, purpose) ?? []);
  const withRunner = [...found, ...runner];
  const tasks = [...withRunner, ...fromTaskFiles(view, missing(withRunner))];
  const left = missing(tasks);
  return [
    ...tasks,
    ...[...ofAutotools(view), ...fromBazel(view), ...ofUnpackaged(view)].filter(({ purpose }) => left.includes(purpose)),
  ].sort((a, b) => PURPOSES.indexOf(a.purpose) - PURPOSES.indexOf(b.purpose));
}

/** Whether the package is in a workspace that has its own command for the same purpose. */
const isCovered = ({ cwd, kind }: FoundCommand, all: readonly FoundCommand[], { manifests }: ProjectView) =>
  manifests.some(
    (one) =>
      one.kind === kind &&
      one.workspace &&
      one.folder !== cwd &&
      isWithin(cwd, one.folder) &&
      all.some((each) => each.cwd === one.folder),
  );

/** The languages of each kind's code. */
const LANGUAGES: Readonly<Record<string, readonly string[]>> = {
  npm: ["TypeScript", "JavaScript", "Vue", "Svelte", "Astro"],
  deno: ["TypeScript", "JavaScript"],
  cargo: ["Rust"],
  go: ["Go"],
  python: ["Python"],
  maven: ["Java", "Kotlin", "Scala"],
  gradle: ["Java", "Kotlin", "Groovy"],
  sbt: ["Scala"],
  dotnet: ["C#", "F#", "Visual Basic"],
  ruby: ["Ruby"],
  php: ["PHP"],
  elixir: ["Elixir"],
  dart: ["Dart"],
  cmake: ["C++", "C"],
  swift: ["Swift"],
};

/** The kinds of package, those with the most code first. */
function kindsOf(found: readonly FoundCommand[], { languages }: ProjectView): string[] {
  const rank = (kind: string) => {
    const at = languages.findIndex((name) => LANGUAGES[kind]?.includes(name));
    return at < 0 ? languages.length : at;
  };
  return [...new Set(found.map(({ kind }) => kind))].sort((a, b) => rank(a) - rank(b));
}

const isSuperseded = ({ kind, folder }: PackageManifest, { manifests }: ProjectView) =>
  RIVALS.some((rivals) => {
    const before = rivals.slice(0, Math.max(0, rivals.indexOf(kind)));
    return manifests.some((one) => one.folder === folder && before.includes(one.kind));
  });

type FoundCommand = ProjectCommand & { kind: string };
/** `isUsual`: the usual command for such a project, rather than one of its own scripts or targets. */
type OwnCommand = ProjectCommand & { isUsual?: boolean };

function ofPackage(manifest: PackageManifest, view: ProjectView, find = FINDERS[manifest.kind]): FoundCommand[] {
  if (!find) return [];
  return find(scopeOf(manifest, view)).map(([purpose, command, sureness]) => ({
    purpose,
    command,
    cwd: manifest.folder,
    from: manifest.file,
    ...(sureness && { isGuess: true as const }),
    kind: manifest.kind,
  }));
}

/** Bazel is often an extra beside the project's main build, for users who have it. */
function fromBazel(view: ProjectView): ProjectCommand[] {
  const bazel = view.manifests.find(({ kind }) => kind === "bazel");
  return bazel ? ofPackage(bazel, view, ofBazel).map(({ kind: _, ...command }) => command) : [];
}

/** The first of those that are the same. */
function unique<T extends ProjectCommand>(commands: readonly T[]): T[] {
  const first = new Map<string, T>();
  for (const one of commands) {
    const key = `${one.purpose}\0${one.cwd}\0${withoutRun(one.command)}`;
    if (!first.has(key)) first.set(key, one);
  }
  return [...first.values()];
}

/** The short spelling of a script's start: `pnpm run lint` is `pnpm lint`. Of Bun, the short one means its own commands. */
const withoutRun = (command: string): string =>
  command.replace(/\b(pnpm|yarn) run (?=\w)/g, "$1 ").replace(/\bnpm run(?:-script)? test\b/g, "npm test");
