import { realpathSync, statSync } from "node:fs";
import type { Git } from "../git/command.ts";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf, UserError, usageError } from "../lib/errors.ts";
import { named } from "../lib/quoted.ts";
import type { Analysis, ProjectPackage } from "../protocol/analysis.ts";
import { commandsOf, type ProjectView } from "./commands.ts";
import { type Listing, listFiles } from "./files.ts";
import { type Framework, frameworksAmong } from "./frameworks.ts";
import { countLanguages } from "./languages.ts";
import { isManifest, type PackageManifest, readManifest } from "./manifests.ts";
import { openTree, type ProjectTree } from "./tree.ts";

const MAX_MANIFESTS = 500;

/** Files that tell something by being there, beside the manifests. */
const SIGNS: readonly [kind: "ci" | "containers" | "testTools" | "monorepo", label: string, pattern: RegExp][] = [
  ["ci", "GitHub Actions", /^\.github\/workflows\/[^/]+\.ya?ml$/],
  ["ci", "GitLab CI", /^\.gitlab-ci\.yml$/],
  ["ci", "Jenkins", /^Jenkinsfile$/],
  ["ci", "Azure Pipelines", /^\.?azure-pipelines(?:\.[\w-]+)?\.ya?ml$/],
  ["ci", "CircleCI", /^\.circleci\/config\.yml$/],
  ["ci", "Travis CI", /^\.travis\.yml$/],
  ["ci", "Bitbucket Pipelines", /^bitbucket-pipelines\.yml$/],
  ["ci", "Buildkite", /^\.buildkite\/.+\.ya?ml$/],
  ["ci", "Drone", /^\.drone\.yml$/],
  ["ci", "Woodpecker", /^\.woodpecker(?:\.yml|\/.+)$/],
  ["containers", "Docker", /(?:^|\/)(?:Dockerfile(?:\.[\w.-]+)?|[\w.-]+\.dockerfile|Containerfile)$/i],
  ["containers", "Docker Compose", /(?:^|\/)(?:docker-)?compose(?:\.[\w-]+)*\.ya?ml$/],
  ["containers", "Helm", /(?:^|\/)Chart\.yaml$/],
  ["containers", "Kustomize", /(?:^|\/)kustomization\.ya?ml$/],
  ["containers", "Dev Container", /^\.devcontainer(?:\/.*)?(?:\.json|\/devcontainer\.json)$/],
  ["containers", "Terraform", /\.tf$/],
  ["testTools", "Jest", /(?:^|\/)jest\.config\.\w+$/],
  ["testTools", "Vitest", /(?:^|\/)vitest\.(?:config|workspace)\.\w+$/],
  ["testTools", "Playwright", /(?:^|\/)playwright\.config\.\w+$/],
  ["testTools", "Cypress", /(?:^|\/)cypress\.(?:config\.\w+|json)$/],
  ["testTools", "pytest", /(?:^|\/)(?:pytest\.ini|conftest\.py)$/],
  ["testTools", "RSpec", /(?:^|\/)\.rspec$/],
  ["testTools", "PHPUnit", /(?:^|\/)phpunit\.xml(?:\.dist)?$/],
  ["testTools", "go test", /_test\.go$/],
  ["monorepo", "pnpm workspaces", /^pnpm-workspace\.yaml$/],
  ["monorepo", "Nx", /^nx\.json$/],
  ["monorepo", "Turborepo", /^turbo\.json$/],
  ["monorepo", "Lerna", /^lerna\.json$/],
  ["monorepo", "Go workspace", /^go\.work$/],
  ["monorepo", "Bazel", /^(?:WORKSPACE(?:\.bazel)?|MODULE\.bazel)$/],
];

/** Names worth keeping beside the list of files, for the questions asked of them later. */
const NOTABLE = /(?:^|\/)(?:test_[^/]+|[^/]+_test)\.py$|(?:^|\/)\.?clippy\.toml$|(?:^|\/)\.golangci\.\w+$/;
/** What every sign above has in common, so that most files are asked one question and not thirty. */
const MAYBE_SIGN =
  /^\.|\.tf$|_test\.go$|\.config\.\w+$|(?:^|\/)(?:[A-Z]|[^/]*docker|[^/]*compose|kustomiz|conftest|pytest|phpunit|cypress|vitest|\.rspec)|^[^/]+\.(?:ya?ml|json|work|bazel)$/i;

/** What a project is. */
export type ProjectFacts = Omit<Analysis, "roster">;

/** A project's facts, and the frameworks it uses with what each is for. */
export interface Survey {
  facts: ProjectFacts;
  frameworks: Framework[];
}

/** Looks at a project's real files: what it is made of, and how it is checked. */
export async function surveyProject(git: Git, path: string, { signal }: { signal?: AbortSignal } = {}): Promise<Survey> {
  const root = projectRoot(path);
  const { source, files, truncated, problem } = await listFiles(git, root, signal);
  const tree = openTree(root);
  try {
    return await surveyFiles({ root, tree, source, files, truncated, problem, signal });
  } finally {
    tree.close();
  }
}

interface SurveyDeps extends Listing {
  root: string;
  tree: ProjectTree;
  signal: AbortSignal | undefined;
}

async function surveyFiles({ root, tree, source, files, truncated, problem, signal }: SurveyDeps): Promise<Survey> {
  const counted = await countLanguages(tree, files, signal);
  const breathe = createBreath(signal);
  const { manifests, problems } = await readManifests(tree, files, breathe);
  const signs = await signsAmong(files, breathe);
  const frameworks = manifests.flatMap(({ kind, dependencies }) => frameworksAmong(kind, dependencies));
  const labels = (wanted: (one: Framework) => boolean) => unique(frameworks.filter(wanted).map(({ label }) => label));
  const facts: ProjectFacts = {
    projectPath: root,
    source,
    ...counted,
    monorepo: monorepoOf(manifests, signs.monorepo),
    packages: packagesOf(manifests),
    frameworks: labels(({ area }) => area !== "test" && area !== "lint"),
    testTools: unique([...labels(({ area }) => area === "test"), ...signs.testTools, ...builtInTests(manifests)]),
    ci: signs.ci,
    containers: signs.containers,
    commands: commandsOf(await viewOf(tree, files, manifests, breathe)),
    problems: [
      ...problems,
      ...(truncated ? [{ file: ".", message: `only the first ${files.length} files were looked at` }] : []),
      ...(problem === undefined
        ? []
        : [{ file: ".", message: `git could not be asked, so ignored files count too: ${problem}` }]),
    ],
  };
  return { facts, frameworks: uniqueFrameworks(frameworks) };
}

function projectRoot(path: string): string {
  try {
    const root = realpathSync(path);
    if (statSync(root).isDirectory()) return root;
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"].includes(codeOf(error) ?? ""))
      throw error;
    throw new UserError(
      `${named(path, 300)}: there is no such folder, or it may not be read. Give the path of a project's folder.`,
      {
        cause: error,
      },
    );
  }
  throw usageError(`${named(path, 300)}: is not a folder. Give the path of a project's folder.`);
}

async function readManifests(
  tree: ProjectTree,
  files: readonly string[],
  breathe: Breath,
): Promise<{ manifests: PackageManifest[]; problems: Analysis["problems"] }> {
  const names = (await among(files, isManifest, breathe)).sort((a, b) => depthOf(a) - depthOf(b) || (a < b ? -1 : 1));
  const problems: Analysis["problems"] = [];
  const manifests: PackageManifest[] = [];
  for (const file of names.slice(0, MAX_MANIFESTS)) {
    const text = tree.text(file);
    const read = text === undefined ? undefined : readManifest(file, text);
    if (read?.problem !== undefined) problems.push({ file, message: read.problem });
    if (read) manifests.push(read.manifest);
    await breathe();
  }
  if (names.length > MAX_MANIFESTS)
    problems.push({ file: ".", message: `only ${MAX_MANIFESTS} of ${names.length} package files were read` });
  return { manifests, problems };
}

/** The files that fit, looked for without holding up anybody. */
async function among(files: readonly string[], fits: (file: string) => boolean, breathe: Breath): Promise<string[]> {
  const found: string[] = [];
  for (const file of files) {
    if (fits(file)) found.push(file);
    await breathe();
  }
  return found;
}

async function signsAmong(files: readonly string[], breathe: Breath): Promise<Record<(typeof SIGNS)[number][0], string[]>> {
  const found = new Set<(typeof SIGNS)[number]>();
  for (const file of await among(files, (each) => MAYBE_SIGN.test(each), breathe)) {
    for (const sign of SIGNS) if (!found.has(sign) && sign[2].test(file)) found.add(sign);
    await breathe();
  }
  const labels = (kind: (typeof SIGNS)[number][0]) =>
    SIGNS.filter((sign) => sign[0] === kind && found.has(sign)).map((sign) => sign[1]);
  return { ci: labels("ci"), containers: labels("containers"), testTools: labels("testTools"), monorepo: labels("monorepo") };
}

function monorepoOf(manifests: readonly PackageManifest[], signs: readonly string[]): string | null {
  const declared = manifests.filter(({ folder }) => folder === ".").flatMap(({ workspace }) => workspace ?? []);
  return unique([...declared, ...signs]).join(", ") || null;
}

/** Several files of one kind in one folder describe one package. */
function packagesOf(manifests: readonly PackageManifest[]): ProjectPackage[] {
  const packages = new Map<string, ProjectPackage>();
  for (const { folder, kind, name, dependencies } of manifests) {
    const key = `${folder}\0${kind}`;
    const before = packages.get(key);
    const labels = frameworksAmong(kind, dependencies).map(({ label }) => label);
    packages.set(key, {
      path: folder,
      kind,
      name: before?.name || name,
      frameworks: unique([...(before?.frameworks ?? []), ...labels]),
    });
  }
  return [...packages.values()];
}

/** Test runners that come with a language and leave no other trace. */
function builtInTests(manifests: readonly PackageManifest[]): string[] {
  const scripts = manifests.flatMap((manifest) => [...manifest.scripts.values()]);
  return [
    ...(scripts.some(testsWithNode) ? ["node:test"] : []),
    ...(manifests.some(({ kind }) => kind === "cargo") ? ["cargo test"] : []),
    ...(manifests.some(({ kind }) => kind === "elixir") ? ["ExUnit"] : []),
  ];
}

function testsWithNode(script: string): boolean {
  const at = script.search(/\bnode\s/);
  return at >= 0 && /\s--test\b/.test(script.slice(at));
}

async function viewOf(
  tree: ProjectTree,
  files: readonly string[],
  manifests: readonly PackageManifest[],
  breathe: Breath,
): Promise<ProjectView> {
  const all = new Set(files);
  const notable = await among(files, (file) => NOTABLE.test(file), breathe);
  return {
    manifests,
    has: (file) => all.has(file),
    some: (pattern) => notable.some((file) => pattern.test(file)),
    read: (file) => (all.has(file) ? tree.text(file) : undefined),
  };
}

function uniqueFrameworks(frameworks: readonly Framework[]): Framework[] {
  return [...new Map(frameworks.map((one) => [one.label, one])).values()];
}

const unique = (names: readonly string[]) => [...new Set(names)];
const depthOf = (file: string) => file.split("/").length;
