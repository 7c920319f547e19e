import type { PackageManifest } from "../manifests/manifest.ts";
import { type CommandFinder, certainIf, type Found, nearest, type ProjectView, type Purpose, when } from "./scope.ts";

const LOCKS = [
  ["pnpm-lock.yaml", "pnpm"],
  ["pnpm-workspace.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["bun.lock", "bun"],
  ["bun.lockb", "bun"],
  ["package-lock.json", "npm"],
  ["npm-shrinkwrap.json", "npm"],
] as const;

/** The package manager of a package.json. */
export function managerOf(manifest: PackageManifest, view: ProjectView): string {
  return manifest.manager ?? rootManager(view) ?? nearest(manifest.folder, view, LOCKS) ?? "npm";
}

const rootManager = (view: ProjectView) =>
  view.manifests.find(({ kind, folder, workspace, manager }) => kind === "npm" && folder === "." && workspace && manager)
    ?.manager;

/** Only well-known script names are run, so that a package file cannot put words of its own into a command. */
export const ofNpm: CommandFinder = ({ manifest, view, isTested }) => {
  const manager = managerOf(manifest, view);
  const { scripts } = manifest;
  const run = (script: string) => (manager === "npm" && script === "test" ? "npm test" : `${manager} run ${script}`);
  const pick = (purpose: Purpose, names: readonly string[]): Found[] => {
    const first = names.find((name) => scripts.has(name));
    const looking = first !== undefined && FIXES.test(scripts.get(first) ?? "") ? checkOnlyScript(first, scripts) : undefined;
    const script = looking ?? first;
    const placeholder = script !== undefined && /no test specified/.test(scripts.get(script) ?? "");
    return script === undefined || placeholder ? [] : [[purpose, run(script)]];
  };
  const test = pick("test", ["test", "test:unit", "test-unit", "test:ci", "tests"]);
  const lint = pick("lint", ["lint", "lint:check", "check", "format:check"]);
  const types = pick("lint", ["typecheck", "type-check", "check-types", "check:types", "types", "tsc"]);
  const checksTypes = types.length === 0 && /\btsc\b/.test(scripts.get("check") ?? "");
  return [
    ...test,
    ...when(test.length === 0 && manager === "bun" && isTested(/[._](?:test|spec)\.[cm]?[jt]sx?$/), "test", "bun test"),
    ...lint,
    ...types,
    ...(checksTypes ? pick("lint", ["check"]) : []),
    ...pick("build", ["build", "compile"]),
  ];
};

/** Options by which a linter changes files. */
const FIXES = /(?:^|\s)(?:--fix|--write|-w)(?:\s|$)/;

/** The script that does the same without changing files. */
const checkOnlyScript = (name: string, scripts: ReadonlyMap<string, string>) =>
  [`${name}:check`, `${name}:ci`, `${name}-check`, `${name}-ci`, `check:${name}`].find(
    (each) => scripts.has(each) && !FIXES.test(scripts.get(each) ?? ""),
  );

export const ofDeno: CommandFinder = ({ manifest: { scripts }, isTested }) => [
  scripts.has("test") ? ["test", "deno task test"] : certainIf(isTested(/[._]test\.[cm]?[jt]sx?$/), "test", "deno test"),
  scripts.has("lint") ? ["lint", "deno task lint"] : ["lint", "deno lint", "guess"],
  ...when(scripts.has("build"), "build", "deno task build"),
];
