import { posix } from "node:path";
import { readSmallYaml } from "../../lib/yaml.ts";
import type { ProjectCommand } from "../../protocol/analysis.ts";
import { elementsOf } from "../manifests/jvm.ts";
import type { PackageManifest } from "../manifests/manifest.ts";
import { arraysOf, sectionsOf } from "../manifests/toml.ts";
import { managerOf } from "./javascript.ts";
import { isWithin, type ProjectView } from "./scope.ts";

/** A command that can be narrowed to some packages. */
interface Divisible {
  /** The folders of the packages that it covers. */
  folders: string[];
  /** The same command for some of them. */
  only(folders: readonly string[]): string;
}

/** Whether a command covers only some packages of the project, or can be narrowed to some. */
export function isPerPackage(command: ProjectCommand, view: ProjectView): boolean {
  return isNested(command, view) || divisible(command, view) !== undefined;
}

const isNested = ({ cwd }: ProjectCommand, { all }: ProjectView) => cwd !== "." && all.some(({ folder }) => folder === cwd);

/** Narrows a command to the affected packages, and lists them; undefined if it concerns none of them. */
export function narrowed<T extends ProjectCommand>(
  command: T,
  view: ProjectView,
  affected: ReadonlySet<string>,
): (T & { packages?: string[] }) | undefined {
  const whole = divisible(command, view);
  if (!whole) {
    const concerns = !isNested(command, view) || [...affected].some((folder) => isWithin(folder, command.cwd));
    return concerns ? command : undefined;
  }
  const packages = whole.folders.filter((folder) => affected.has(folder));
  if (packages.length === 0) return undefined;
  return packages.length === whole.folders.length ? command : { ...command, command: whole.only(packages), packages };
}

const PLAIN = /^[\w@%+=:,./ -]+$/;
/** Variables before a command, with or without quotes. */
const VARIABLES = /^(?:\w+=(?:'[^']*'|[\w@%+=:,./-]*) )*/;
const SAFE = /^[\w@./-]+$/;

function divisible({ command, cwd }: ProjectCommand, view: ProjectView): Divisible | undefined {
  const variables = VARIABLES.exec(command)?.[0] ?? "";
  const bare = command.slice(variables.length);
  if (!PLAIN.test(bare)) return undefined;
  const words = bare.split(" ");
  const rest = words.slice(1);
  const name = words[0]!.slice(words[0]!.lastIndexOf("/") + 1);
  const at: PackageFolder = { cwd, view };
  const found =
    name === "cargo"
      ? ofCargo(words, at)
      : /^mvnw?$/.test(name)
        ? ofMaven(words, at)
        : /^gradlew?$/.test(name)
          ? ofGradle(words, at)
          : (ofPytest(words, at) ??
            ofRunner(words, at) ??
            (/^(?:npm|pnpm|yarn|bun)$/.test(name) ? ofManager(name, rest, at) : undefined));
  const folders = found?.folders.filter((folder) => SAFE.test(folder)) ?? [];
  if (!found || folders.length < 2 || folders.length < found.folders.length) return undefined;
  return { folders, only: (some) => `${variables}${found.only(some)}` };
}

interface PackageFolder {
  /** The folder that the command runs in. */
  cwd: string;
  view: ProjectView;
}

const relative = (folder: string, cwd: string) => posix.relative(cwd === "." ? "" : cwd, folder === "." ? "" : folder) || ".";

/** Adds words before the `--` whose arguments go to another program. */
function withMore(words: readonly string[], more: readonly string[]): string {
  const end = words.indexOf("--");
  return (end < 0 ? [...words, ...more] : [...words.slice(0, end), ...more, ...words.slice(end)]).join(" ");
}

function ofCargo(words: readonly string[], { cwd, view }: PackageFolder): Divisible | undefined {
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  const root = view.all.find(({ kind, folder }) => kind === "cargo" && folder === cwd);
  const isOne = own.some((word) => /^(?:-p|--package|--manifest-path|--exclude|-F|--features)(?:=|$)/.test(word));
  const action = own.find((word, index) => index > 0 && !word.startsWith("+"));
  if (!root?.workspace || isOne || !/^(?:test|nextest|build|check|clippy)$/.test(action ?? "")) return undefined;
  const isAll = own.some((word) => word === "--workspace" || word === "--all");
  if (!isAll && root.isNamed) return undefined;
  const workspace = sectionsOf(root.text).get("workspace");
  const lists = arraysOf(workspace);
  // The default members may be fewer.
  if (!isAll && lists.has("default-members")) return undefined;
  const isListed = memberOf(
    lists.get("members") ?? [],
    (lists.get("exclude") ?? []).map((each) => `!${each}`),
  );
  const members = view.all.filter(
    ({ kind, folder, isNamed }) => kind === "cargo" && isNamed && (folder === cwd || isListed(relative(folder, cwd))),
  );
  const names = new Map(members.map(({ folder, name }) => [folder, name]));
  if (members.some(({ name }) => !SAFE.test(name))) return undefined;
  const bare = words.filter((word, index) => (end >= 0 && index > end) || (word !== "--workspace" && word !== "--all"));
  return {
    folders: [...names.keys()],
    only: (folders) =>
      withMore(
        bare,
        folders.flatMap((folder) => ["-p", names.get(folder)!]),
      ),
  };
}

/** Pytest at the root of a uv workspace, which finds the tests of every member. */
function ofPytest(words: readonly string[], { cwd, view }: PackageFolder): Divisible | undefined {
  const at = words.indexOf("pytest");
  const isPlain = words.every((word, index) => index === at || word.startsWith("-") || (index < at && RUNS_PYTHON.test(word)));
  const root = view.all.find(({ kind, folder }) => kind === "python" && folder === cwd);
  const workspace = root && arraysOf(sectionsOf(root.text).get("tool.uv.workspace"));
  if (at < 0 || !isPlain || !workspace?.has("members")) return undefined;
  const isListed = memberOf(
    workspace.get("members") ?? [],
    (workspace.get("exclude") ?? []).map((each) => `!${each}`),
  );
  const members = view.all.filter(({ kind, folder }) => kind === "python" && folder !== cwd && isListed(relative(folder, cwd)));
  const tests = view.testFiles.filter((file) => file.endsWith(".py") && isWithin(file, cwd));
  // Tests of the root may be about any member.
  if (tests.some((file) => !members.some(({ folder }) => isWithin(file, folder)))) return undefined;
  const tested = members.filter(({ folder }) => tests.some((file) => isWithin(file, folder)));
  return {
    folders: [...new Set(tested.map(({ folder }) => folder))],
    only: (folders) => [...words, ...folders.map((folder) => relative(folder, cwd))].join(" "),
  };
}
const RUNS_PYTHON = /^(?:uv|run|python3?)$/;

function ofMaven(words: readonly string[], { cwd, view }: PackageFolder): Divisible | undefined {
  if (words.some((word) => /^(?:-pl|--projects|-f|--file|-N|--non-recursive|-rf)(?:=|$)/.test(word))) return undefined;
  const folders: string[] = [];
  const visit = (folder: string, depth: number) => {
    const pom = view.all.find(({ kind, file }) => kind === "maven" && file === posix.join(folder, "pom.xml"));
    if (!pom || depth > 5) return;
    const modules = elementsOf(pom.text, "module").map((each) => posix.join(folder, each.trim()));
    if (modules.length === 0) folders.push(folder);
    for (const module of modules) visit(module, depth + 1);
  };
  visit(cwd, 0);
  if (folders.includes(cwd)) return undefined;
  // Also build what the packages need, since nobody has installed it.
  return {
    folders: [...new Set(folders)],
    only: (some) => [...words, "-pl", some.map((each) => relative(each, cwd)).join(","), "-am"].join(" "),
  };
}

function ofGradle(words: readonly string[], { cwd, view }: PackageFolder): Divisible | undefined {
  const tasks = words.slice(1).filter((word) => !word.startsWith("-"));
  if (tasks.length === 0 || !tasks.every((task) => /^(?:test|check)$/.test(task))) return undefined;
  const tested = view.all.filter(
    ({ kind, folder, file }) =>
      kind === "gradle" &&
      /build\.gradle(?:\.kts)?$/.test(file) &&
      folder !== cwd &&
      isWithin(folder, cwd) &&
      view.testFiles.some((test) => isWithin(test, folder)),
  );
  const settings = ["settings.gradle.kts", "settings.gradle"].map((name) => view.read(posix.join(cwd, name)) ?? "").join("\n");
  const pathOf = (folder: string) => relative(folder, cwd).replaceAll("/", ":");
  // This cannot find a project whose folder differs from its name.
  if (/projectDir/.test(settings) || tested.some(({ folder }) => !settings.includes(pathOf(folder)))) return undefined;
  return {
    folders: tested.map(({ folder }) => folder),
    only: (folders) =>
      words
        .flatMap((word, index) =>
          index === 0 || word.startsWith("-") ? [word] : folders.map((folder) => `:${pathOf(folder)}:${word}`),
        )
        .join(" "),
  };
}

/** A package manager's own way to run a script in every package, or a root script that does so. */
function ofManager(
  manager: string,
  rest: readonly string[],
  { cwd, view }: PackageFolder,
  isScript = false,
): Divisible | undefined {
  const root = npmRoot({ cwd, view });
  if (!root) return undefined;
  const plain = rest.filter((word) => !word.startsWith("-"));
  const [first = "", second = ""] = plain;
  const script = /^run(?:-script)?$/.test(first) ? second : first;
  const members = (of = script) => workspaceMembers({ cwd, view }).filter(({ scripts }) => scripts.has(of));
  const foldersOf = (of: readonly PackageManifest[]) => of.map(({ folder }) => folder);
  const without = (flags: RegExp) => rest.filter((word) => !flags.test(word));
  if (rest.some((word) => /^(?:--filter|-F|--workspace|-w|--include|--exclude|--from|--since)(?:=|$)/.test(word)))
    return undefined;
  if (manager === "npm" && rest.some((word) => /^(?:--workspaces|-ws)$/.test(word)))
    return {
      folders: foldersOf(members()),
      only: (folders) =>
        `npm ${withMore(
          without(/^(?:--workspaces|-ws)$/),
          folders.map((folder) => `--workspace=${relative(folder, cwd)}`),
        )}`,
    };
  if (manager === "pnpm" && rest.some((word) => /^(?:--recursive|-r)$/.test(word)))
    return {
      folders: foldersOf(members()),
      only: (folders) =>
        ["pnpm", ...folders.map((folder) => `--filter=./${relative(folder, cwd)}`), ...without(/^(?:--recursive|-r)$/)].join(" "),
    };
  if (manager === "yarn" && first === "workspaces") return ofYarn(rest, { cwd, view });
  const inner = root.scripts.get(script);
  const isOnly = plain.length === (script === first ? 1 : 2) && rest.length === plain.length;
  const isPlainScript = isOnly && inner !== undefined && !root.scripts.has(`pre${script}`) && !root.scripts.has(`post${script}`);
  if (isScript || !isPlainScript || !PLAIN.test(inner)) return undefined;
  const words = inner.split(" ");
  if (/^(?:npm|pnpm|yarn)$/.test(words[0]!)) return ofManager(words[0]!, words.slice(1), { cwd, view }, true);
  return /^(?:turbo|nx|lerna)$/.test(words[0]!) ? ofRunner([...execOf(root, view), ...words], { cwd, view }) : undefined;
}

function ofYarn(rest: readonly string[], at: PackageFolder): Divisible | undefined {
  const plain = rest.filter((word) => !word.startsWith("-"));
  const isForeach = plain[1] === "foreach";
  const script = plain[plain[1] === "run" || plain[2] === "run" ? plain.indexOf("run") + 1 : 2] ?? "";
  if (!isForeach && plain[1] !== "run") return undefined;
  const members = workspaceMembers(at).filter(({ scripts, isNamed, name }) => scripts.has(script) && isNamed && SAFE.test(name));
  const names = new Map(members.map(({ folder, name }) => [folder, name]));
  const run = rest.indexOf(isForeach && rest.includes("run") ? "run" : script);
  return {
    folders: [...names.keys()],
    only: (folders) =>
      isForeach
        ? [
            "yarn",
            ...rest.slice(0, run),
            ...folders.flatMap((folder) => ["--include", names.get(folder)!]),
            ...rest.slice(run),
          ].join(" ")
        : folders.map((folder) => `yarn workspace ${names.get(folder)} run ${script}`).join(" && "),
  };
}

const EXEC = /^(?:npx|pnpx|bunx|exec|pnpm|yarn|npm|bun)$/;
const execOf = (root: PackageManifest, view: ProjectView): string[] => {
  const manager = managerOf(root, view);
  return manager === "pnpm" ? ["pnpm", "exec"] : manager === "yarn" ? ["yarn"] : manager === "bun" ? ["bunx"] : ["npx"];
};

/** Turborepo, Nx and Lerna, which take package names. */
function ofRunner(words: readonly string[], at: PackageFolder): Divisible | undefined {
  const start = words.findIndex((word) => !EXEC.test(word));
  const [tool = "", ...rest] = words.slice(Math.max(start, 0));
  const own = rest.slice(0, rest.includes("--") ? rest.indexOf("--") : undefined);
  const isChosen = own.some((word) =>
    /^(?:--filter|-F|--scope|--ignore|--projects|-p|--exclude|--since|--affected)(?:=|$)/.test(word),
  );
  if (!/^(?:turbo|nx|lerna)$/.test(tool) || isChosen) return undefined;
  if (tool === "nx" && rest[0] !== "run-many") return undefined;
  const tasks = new Set(own.flatMap((word) => word.replace(/^--targets?=/, "").split(",")));
  const members = workspaceMembers(at).filter(({ scripts }) => [...scripts.keys()].some((script) => tasks.has(script)));
  if (tool === "nx" && at.view.all.some(isNxOnly)) return ofNxProjects(words, at, members);
  const names = new Map(members.map((each) => [each.folder, tool === "nx" ? nxName(each, at.view) : each.name]));
  if ([...names.values()].some((name) => !SAFE.test(name))) return undefined;
  return {
    folders: [...names.keys()],
    only: (folders) => {
      const some = folders.map((folder) => names.get(folder)!);
      const flags =
        tool === "nx"
          ? [`--projects=${some.join(",")}`]
          : some.map((name) => `--${tool === "turbo" ? "filter" : "scope"}=${name}`);
      return withMore(words, flags);
    },
  };
}

const isNxOnly = ({ kind, folder }: PackageManifest, _: number, all: readonly PackageManifest[]) =>
  kind === "nx" && !all.some((one) => one.kind === "npm" && one.folder === folder);

/** Projects that only Nx knows often name their dependencies only in imports. Nx finds the dependants itself. */
function ofNxProjects(
  words: readonly string[],
  { cwd, view }: PackageFolder,
  members: readonly PackageManifest[],
): Divisible | undefined {
  const own = new Set(view.all.filter(({ kind, folder }) => kind === "nx" && folder !== cwd).map(({ folder }) => folder));
  const fileOf = (folder: string) => `${relative(folder, cwd)}/${own.has(folder) ? "project.json" : "package.json"}`;
  return {
    folders: [...new Set([...own, ...members.map(({ folder }) => folder)])],
    only: (some) =>
      withMore(
        words.map((word) => (word === "run-many" ? "affected" : word)).filter((word) => word !== "--all"),
        [`--files=${some.map(fileOf).join(",")}`],
      ),
  };
}

function nxName({ folder, name }: PackageManifest, view: ProjectView): string {
  return /"name"\s{0,5}:\s{0,5}"([^"]{1,100})"/.exec(view.read(`${folder}/project.json`) ?? "")?.[1] ?? name;
}

const npmRoot = ({ cwd, view }: PackageFolder) => view.all.find(({ kind, folder }) => kind === "npm" && folder === cwd);

/** The packages of a folder's workspace, by the patterns of its root. */
function workspaceMembers(at: PackageFolder): PackageManifest[] {
  const { cwd, view } = at;
  const pnpm = view.read(posix.join(cwd, "pnpm-workspace.yaml"));
  const patterns = pnpm === undefined ? npmPatterns(npmRoot(at)?.text ?? "{}") : pnpmPatterns(pnpm);
  const isListed = memberOf(patterns);
  return view.all.filter(
    ({ kind, folder }) => kind === "npm" && folder !== cwd && isWithin(folder, cwd) && isListed(relative(folder, cwd)),
  );
}

const texts = (value: unknown) => (Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : []);

function npmPatterns(text: string): string[] {
  try {
    const { workspaces } = JSON.parse(text) as { workspaces?: unknown };
    return Array.isArray(workspaces) ? texts(workspaces) : texts((workspaces as { packages?: unknown } | undefined)?.packages);
  } catch {
    // A broken file has no packages.
    return [];
  }
}

function pnpmPatterns(text: string): string[] {
  const read = readSmallYaml(text);
  return "value" in read ? texts((read.value as { packages?: unknown } | null)?.packages) : [];
}

const MOST_PARTS = 12;

/** Whether a folder matches patterns such as `packages/*`; patterns with `!` exclude. */
function memberOf(patterns: readonly string[], without: readonly string[] = []): (folder: string) => boolean {
  const all = [...patterns, ...without]
    .map((pattern) => ({
      isOut: pattern.startsWith("!"),
      parts: posix.normalize(pattern.replace(/^!/, "")).replace(/\/$/, "").split("/"),
    }))
    .filter(({ parts }) => parts.length <= MOST_PARTS && parts.filter((part) => part === "**").length <= 2);
  return (folder) => {
    const parts = folder.split("/");
    const fits = all.filter((one) => matchesParts(one.parts, parts));
    return fits.length > 0 && !fits.some(({ isOut }) => isOut);
  };
}

function matchesParts(pattern: readonly string[], parts: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return parts.length === 0;
  if (first === "**") return parts.some((_, index) => matchesParts(rest, parts.slice(index))) || matchesParts(rest, []);
  return parts.length > 0 && fitsName(first, parts[0]!) && matchesParts(rest, parts.slice(1));
}

/** Whether a name fits a pattern with one or more `*`. */
function fitsName(pattern: string, name: string): boolean {
  const pieces = pattern.split("*");
  if (pieces.length === 1) return pattern === name;
  const [first = "", ...middle] = pieces;
  const last = middle.pop() ?? "";
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  let at = first.length;
  for (const piece of middle) {
    const found = name.indexOf(piece, at);
    if (found < 0 || found + piece.length > name.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}
