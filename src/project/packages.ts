import type { ProjectCommand, ProjectPackage } from "../protocol/analysis.ts";
import { managerOf } from "./commands/javascript.ts";
import { isWithin, nearest, type ProjectView } from "./commands/scope.ts";
import { type Framework, frameworksOf } from "./frameworks.ts";
import { type PackageManifest, uses } from "./manifests/manifest.ts";
import { isDocumentation, isExampleOrDocs, isForDevelopers, isUnshipped } from "./places.ts";

/** The packages that people work on: without examples and documentation, unless there is nothing else. */
export function mainOf(manifests: readonly PackageManifest[]): readonly PackageManifest[] {
  const own = manifests.filter((one) => !isExampleOrDocs(one.folder) && !isDocumentation(one));
  return own.length > 0 ? own : manifests;
}

/** The frameworks of shipped code, and the tools of all packages; a project does not use itself. */
export function frameworksIn(manifests: readonly PackageManifest[]): Framework[] {
  const main = mainOf(manifests);
  const isMixed = main.some(({ folder }) => !isUnshipped(folder));
  const own = new Set(main.filter(({ isNamed }) => isNamed).map(({ name }) => name.toLowerCase()));
  const found = main.flatMap((one) => {
    const foreign = (names: ReadonlySet<string>) => new Set([...names].filter((name) => !own.has(name.toLowerCase())));
    const all = frameworksOf({ ...one, dependencies: foreign(one.dependencies), development: foreign(one.development) });
    return isMixed && isUnshipped(one.folder) ? all.filter(({ area }) => area === "test" || area === "lint") : all;
  });
  return [...new Map(found.map((one) => [one.label, one])).values()];
}

/** The share of shipped files that must be where a framework is used before it calls for a role of its own. */
const WORTH_A_ROLE = 0.1;

/**
 * The frameworks that call for a role of their own: not app frameworks used only in a corner of the project. The root of a
 * multi-package build counts only if no package below uses the framework.
 */
export function frameworksForRoles(
  found: readonly Framework[],
  manifests: readonly PackageManifest[],
  files: readonly string[],
): readonly Framework[] {
  if (!found.some(({ area }) => area === "mobile" || area === "desktop")) return found;
  const shipped = files.filter((file) => CODE.test(file) && !isUnshipped(file));
  return found.filter(({ label, area }) => {
    if (area !== "mobile" && area !== "desktop") return true;
    const users = mainOf(manifests).filter((one) => frameworksOf(one).some((each) => each.label === label));
    const nested = users.filter(({ folder }) => folder !== ".");
    const places = nested.length > 0 ? nested : users;
    const inThem = shipped.filter((file) => places.some((one) => isWithin(file, one.folder) && isSourceOf(one, file)));
    return inThem.length >= shipped.length * WORTH_A_ROLE;
  });
}
/** Whether a file may be the app's own: a build file in a corner does not make an app of the scripts beside it. */
const isSourceOf = ({ folder, kind }: PackageManifest, file: string) =>
  folder === "." || (kind !== "gradle" && kind !== "maven") || /\.(?:java|kt|scala|groovy)$|\/src\/main\//.test(file);
const CODE = /\.(?:java|kt|swift|m|mm|dart|[cm]?[jt]sx?|cs|fs|vb|c|cc|cpp|h|hpp|rs|go|py|rb|php|scala|groovy|vue|svelte)$/;

/** A folder with this many packages and not a single script holds data, such as type definitions. */
const MANY = 50;

/** The manifests of packages that people work on one by one. */
export function withoutCollections(manifests: readonly PackageManifest[]): PackageManifest[] {
  const groups = new Map<string, PackageManifest[]>();
  for (const one of manifests) {
    if (one.kind !== "npm" || !one.folder.includes("/")) continue;
    const top = one.folder.split("/")[0]!;
    const group = groups.get(top);
    if (group) group.push(one);
    else groups.set(top, [one]);
  }
  const collections = [...groups].filter(([, all]) => all.length >= MANY && all.every(({ scripts }) => scripts.size === 0));
  const dropped = new Set(collections.flatMap(([, all]) => all));
  return manifests.filter((one) => !dropped.has(one));
}

/** A solution lists projects, and a requirements file for tools or documentation lists what they need; neither is a package. */
const isOnlyList = ({ file, folder, kind, workspace }: PackageManifest) =>
  (kind === "dotnet" && workspace !== undefined) || (file.endsWith(".txt") && kind === "python" && isForDevelopers(folder));

/** Several files of one kind in one folder describe one package. */
export function packagesOf(manifests: readonly PackageManifest[]): ProjectPackage[] {
  const packages = new Map<string, ProjectPackage>();
  for (const manifest of manifests.filter((one) => !isOnlyList(one))) {
    const { folder, kind, name, isNamed } = manifest;
    const key = `${folder}\0${kind}`;
    const before = packages.get(key);
    const labels = frameworksOf(manifest).map(({ label }) => label);
    packages.set(key, {
      path: folder,
      kind,
      name: isNamed || !before ? name : before.name,
      frameworks: [...new Set([...(before?.frameworks ?? []), ...labels])],
    });
  }
  return [...packages.values()];
}

const WORKSPACES: Readonly<Record<string, string>> = {
  npm: "npm workspaces",
  yarn: "Yarn workspaces",
  pnpm: "pnpm workspaces",
  bun: "Bun workspaces",
};

/** What makes several packages one project, according to its root, or to the topmost folders if there is no root. */
export function monorepoOf(view: ProjectView, signs: readonly string[]): string | null {
  const depth = ({ folder }: PackageManifest) => (folder === "." ? 0 : folder.split("/").length);
  const top = Math.min(...view.manifests.map(depth));
  const declared = view.manifests
    .filter((one) => depth(one) === top)
    .flatMap((one) => (one.workspace && one.kind === "npm" ? (WORKSPACES[managerOf(one, view)] ?? []) : (one.workspace ?? [])));
  const bazel = view.named(/(?:^|\/)BUILD(?:\.bazel)?$/).length > 1 && view.manifests.some(({ kind }) => kind === "bazel");
  return [...new Set([...declared, ...signs, ...(bazel ? ["Bazel"] : [])])].join(", ") || null;
}

/** The package manager of each kind, if the kind alone determines it. */
const MANAGERS: Readonly<Record<string, string>> = {
  deno: "Deno",
  cargo: "Cargo",
  go: "Go modules",
  maven: "Maven",
  gradle: "Gradle",
  sbt: "sbt",
  dotnet: "NuGet",
  ruby: "Bundler",
  php: "Composer",
  elixir: "Mix",
  dart: "pub",
};
const PYTHON_LOCKS = [
  ["uv.lock", "uv"],
  ["poetry.lock", "Poetry"],
  ["pdm.lock", "PDM"],
  ["Pipfile", "Pipenv"],
] as const;
const PYTHON_TOOLS = [
  ["uv", "uv"],
  ["poetry", "Poetry"],
  ["pdm", "PDM"],
  ["hatch", "Hatch"],
] as const;

export function packageManagersOf(view: ProjectView): string[] {
  // Tests of a tool that reads projects often hold some.
  const own = view.manifests.filter(({ folder }) => !isUnshipped(folder));
  const found = (own.length > 0 ? own : view.manifests).flatMap((manifest) => {
    if (manifest.kind === "npm") return managerOf(manifest, view);
    if (manifest.kind !== "python") return MANAGERS[manifest.kind] ?? [];
    const named = PYTHON_TOOLS.find(([tool]) => uses(manifest, tool))?.[1];
    return nearest(manifest.folder, view, PYTHON_LOCKS) ?? named ?? [];
  });
  return [...new Set(found)];
}

/** Test runners that come with a language and leave no trace but the command. */
const RUNNERS: readonly [pattern: RegExp, label: string][] = [
  [/^cargo test\b/, "cargo test"],
  [/^mix test\b/, "ExUnit"],
  [/^deno (?:task )?test\b/, "deno test"],
  [/^bun test\b/, "bun test"],
  [/^swift test\b/, "XCTest"],
  [/\bmanage\.py test\b/, "Django's test runner"],
  [/\bruntests\.py\b/, "a runner of its own"],
  [/^hatch /, "Hatch"],
  [/^bazel test\b/, "bazel test"],
];

export function toolsIn(commands: readonly ProjectCommand[], manifests: readonly PackageManifest[]): string[] {
  const scripts = manifests.flatMap((manifest) => [...manifest.scripts.values()]);
  const tests = commands.filter(({ purpose, isGuess }) => purpose === "test" && !isGuess);
  return [
    ...(scripts.some(testsWithNode) ? ["node:test"] : []),
    ...(scripts.some((script) => /\bbun test\b/.test(script)) ? ["bun test"] : []),
    ...RUNNERS.filter(([pattern]) => tests.some(({ command }) => pattern.test(command))).map(([, label]) => label),
  ];
}

function testsWithNode(script: string): boolean {
  const at = script.search(/\bnode\s/);
  return at >= 0 && /\s--test\b/.test(script.slice(at));
}
