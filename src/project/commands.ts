import type { Analysis, ProjectCommand } from "../protocol/analysis.ts";
import { ofDeno, ofNpm } from "./commands/javascript.ts";
import { ofGradle, ofMaven } from "./commands/jvm.ts";
import { ofBazel, ofCargo, ofCmake, ofGo, ofSwift } from "./commands/native.ts";
import { ofDart, ofDotnet, ofElixir, ofPhp, ofRuby, ofSbt } from "./commands/others.ts";
import { ofPython } from "./commands/python.ts";
import { type CommandFinder, type ProjectView, scopeOf } from "./commands/scope.ts";
import { fromTaskFiles, ownTargets } from "./commands/task-files.ts";
import type { PackageManifest } from "./manifests/manifest.ts";

const PURPOSES = ["test", "lint", "build"] as const;
const MAX_NESTED = 20;

/** A command that tells whether work is sound, to be run by a shell in `cwd`, a folder relative to the project. */
export interface Check {
  name: string;
  command: string;
  cwd: string;
}

/** The project's own checks, tests first. */
export function findChecks(analysis: Pick<Analysis, "commands">): Check[] {
  return PURPOSES.flatMap((purpose) =>
    analysis.commands
      .filter((one) => one.purpose === purpose)
      .map(({ command, cwd }) => ({ name: cwd === "." ? purpose : `${purpose} (${cwd})`, command, cwd })),
  );
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
/** Kinds that build the same code: the first that a folder has speaks for it. */
const RIVALS: readonly (readonly string[])[] = [
  ["maven", "gradle"],
  ["cmake", "swift"],
];
/** Kinds whose commands follow from the tool, not from what the project wrote down. */
const BY_CONVENTION = new Set(["cargo", "go", "maven", "gradle", "sbt", "python", "ruby", "cmake", "elixir", "dart"]);

/** The commands that test, lint and build: the root's own where it has them, else those of the packages below. */
export function commandsOf(view: ProjectView): ProjectCommand[] {
  const all = view.manifests.filter((one) => !isOutspoken(one, view)).flatMap((manifest) => ofPackage(manifest, view));
  const own = ownTargets(view);
  const perEcosystem = PURPOSES.flatMap((purpose) =>
    kindsOf(all, view).flatMap((kind) => {
      if (BY_CONVENTION.has(kind) && own.some((one) => one.purpose === purpose)) return [];
      const mine = all.filter((one) => one.purpose === purpose && one.kind === kind);
      const rooted = mine.filter(({ cwd }) => cwd === ".");
      return rooted.length > 0 ? rooted : mine.slice(0, MAX_NESTED);
    }),
  ).map(({ kind: _, ...command }) => command);
  const replaces = (one: ProjectCommand) => all.some(({ kind, purpose }) => BY_CONVENTION.has(kind) && purpose === one.purpose);
  const found = unique([...own.filter(replaces), ...perEcosystem]);
  const missing = (from: readonly ProjectCommand[]) => PURPOSES.filter((purpose) => !from.some((one) => one.purpose === purpose));
  const tasks = [...found, ...fromTaskFiles(view, missing(found))];
  const left = missing(tasks);
  return [...tasks, ...fromBazel(view).filter(({ purpose }) => left.includes(purpose))].sort(
    (a, b) => PURPOSES.indexOf(a.purpose) - PURPOSES.indexOf(b.purpose),
  );
}

/** Which languages the code of a kind is written in. */
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

/** The kinds of package, those of the most code first. */
function kindsOf(found: readonly FoundCommand[], { languages }: ProjectView): string[] {
  const rank = (kind: string) => {
    const at = languages.findIndex((name) => LANGUAGES[kind]?.includes(name));
    return at < 0 ? languages.length : at;
  };
  return [...new Set(found.map(({ kind }) => kind))].sort((a, b) => rank(a) - rank(b));
}

const isOutspoken = ({ kind, folder }: PackageManifest, { manifests }: ProjectView) =>
  RIVALS.some((rivals) => {
    const before = rivals.slice(0, Math.max(0, rivals.indexOf(kind)));
    return manifests.some((one) => one.folder === folder && before.includes(one.kind));
  });

type FoundCommand = ProjectCommand & { kind: string };

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

/** Bazel often stands beside what a project is otherwise built with, for users who have it. */
function fromBazel(view: ProjectView): ProjectCommand[] {
  const bazel = view.manifests.find(({ kind }) => kind === "bazel");
  return bazel ? ofPackage(bazel, view, ofBazel).map(({ kind: _, ...command }) => command) : [];
}

function unique(commands: readonly ProjectCommand[]): ProjectCommand[] {
  return [...new Map(commands.map((one) => [`${one.purpose}\0${one.cwd}\0${one.command}`, one])).values()];
}
