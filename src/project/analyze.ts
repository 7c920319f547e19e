import { realpathSync, statSync } from "node:fs";
import { basename } from "node:path";
import type { Git } from "../git/command.ts";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf, UserError, usageError } from "../lib/errors.ts";
import { named } from "../lib/quoted.ts";
import type { Analysis, LanguageShare } from "../protocol/analysis.ts";
import { affectedBy } from "./affected.ts";
import { fromCi } from "./commands/ci.ts";
import { readInstructions } from "./commands/instructions.ts";
import { cmakeTestTools } from "./commands/native.ts";
import type { ProjectView } from "./commands/scope.ts";
import { type Check, commandsOf, findChecks } from "./commands.ts";
import { type Listing, listFiles } from "./files.ts";
import type { Framework } from "./frameworks.ts";
import { countLanguages, madeStyles } from "./languages.ts";
import type { PackageManifest } from "./manifests/manifest.ts";
import { isManifest, readManifest } from "./manifests/read.ts";
import {
  frameworksForRoles,
  frameworksIn,
  mainOf,
  monorepoOf,
  packageManagersOf,
  packagesOf,
  toolsIn,
  withoutCollections,
} from "./packages.ts";
import { refuseSystemFolder } from "./roots.ts";
import { maybeSign, signsAmong } from "./signs.ts";
import { isTestFile } from "./tests.ts";
import { openTree, type ProjectTree } from "./tree.ts";

const MAX_MANIFESTS = 500;

/** Names that are kept for later questions about the list of files. */
const NOTABLE =
  /(?:^|\/)\.?clippy\.toml$|(?:^|\/)\.golangci\.\w+$|\.swift$|(?:^|\/)(?:CMakeLists\.txt|BUILD(?:\.bazel)?)$|^build\/|^\.github\/workflows\/[^/]+$|^(?:\.gitlab-ci|\.travis|\.cirrus|\.?azure-pipelines)\.ya?ml$|^\.circleci\/config\.yml$/;
const CI_FILES = /^\.github\/workflows\/[^/]+\.ya?ml$|^(?:\.gitlab-ci|\.travis|\.cirrus|azure-pipelines)\.yml$|^\.circleci\//;
const MAX_CI_FILES = 20;

/** What a project is. */
export type ProjectFacts = Omit<Analysis, "roster">;

/** A project's facts, and the frameworks that call for a role of their own. */
export interface Survey {
  facts: ProjectFacts;
  frameworks: readonly Framework[];
  /** The languages of the shipped code, without tests, examples and documentation. */
  shipped: LanguageShare[];
  /** The commands as checks, the cheapest first. */
  checks: Check[];
  /** How many further commands are not run. */
  leftOut: number;
}

export interface SurveyOptions {
  signal?: AbortSignal | undefined;
  /** The changed files: in a project of several packages, only packages that they concern are checked. */
  changed?: readonly string[] | undefined;
}

/** Looks at a project's real files: what it is made of, and how it is checked. */
export async function surveyProject(git: Git, path: string, { signal, changed }: SurveyOptions = {}): Promise<Survey> {
  const root = projectRoot(path);
  const { source, files, truncated, problem } = await listFiles(git, root, signal);
  const tree = openTree(root);
  try {
    return await surveyFiles({ root, tree, source, files, truncated, problem, signal, changed });
  } finally {
    tree.close();
  }
}

interface SurveyDeps extends Listing {
  root: string;
  tree: ProjectTree;
  signal: AbortSignal | undefined;
  changed: readonly string[] | undefined;
}

async function surveyFiles({ root, tree, source, files, truncated, problem, signal, changed }: SurveyDeps): Promise<Survey> {
  const breathe = createBreath(signal);
  const picked = await pick(files, QUESTIONS, breathe);
  const { shipped, ...counted } = await countLanguages(tree, files, madeStyles(picked.styles), signal);
  const { manifests: all, problems } = await readManifests(tree, manifestsAmong(picked.manifests, files), breathe);
  const manifests = withoutCollections(all);
  const signs = await signsAmong(picked.signs, breathe);
  const view = viewOf({ tree, files, picked, manifests, languages: shipped.map(({ name }) => name) });
  const frameworks = frameworksIn(manifests);
  const labels = (wanted: (one: Framework) => boolean) => unique(frameworks.filter(wanted).map(({ label }) => label));
  const ci = await fromCi(picked.notable, view, breathe);
  const affected = changed && affectedBy(changed, manifests);
  const written = { ...(await readInstructions(view, breathe)), ci };
  const { planned, leftOut } = await commandsOf(view, written, { breathe, affected });
  const commands = planned.map(({ packages: _, isPerPackage: __, ...command }) => command);
  const facts: ProjectFacts = {
    projectPath: root,
    source,
    ...counted,
    monorepo: monorepoOf(view, signs.monorepo),
    packages: packagesOf(manifests),
    frameworks: labels(({ area }) => area !== "test" && area !== "lint"),
    packageManagers: packageManagersOf(view),
    testTools: unique([
      ...labels(({ area }) => area === "test"),
      ...signs.testTools,
      ...cmakeTestTools(view),
      ...toolsIn(commands, manifests),
    ]),
    testFiles: view.testFiles.length,
    ci: signs.ci,
    containers: signs.containers,
    commands,
    problems: [
      ...problems,
      ...(leftOut > 0 ? [{ file: ".", message: leftOutMessage(leftOut) }] : []),
      ...(truncated ? [{ file: ".", message: `only the first ${files.length} files were looked at` }] : []),
      ...(problem === undefined
        ? []
        : [{ file: ".", message: `git could not be asked, so ignored files count too: ${problem}` }]),
    ],
  };
  return {
    facts,
    frameworks: frameworksForRoles(frameworks, manifests, files),
    shipped,
    checks: findChecks({ commands: planned }),
    leftOut,
  };
}

export const leftOutMessage = (count: number) =>
  `${count} more commands of its packages are not run. Say which matter: io squad set <slug> --check "<command>", or checks in swarm.config.yaml`;

function projectRoot(path: string): string {
  try {
    const root = realpathSync(path);
    if (statSync(root).isDirectory()) {
      refuseSystemFolder(root);
      return root;
    }
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

/** Other tools have a `project.json` too: it is a package only if the project uses Nx. */
const manifestsAmong = (found: readonly string[], files: readonly string[]): readonly string[] =>
  files.includes("nx.json") ? found : found.filter((file) => basename(file) !== "project.json");

async function readManifests(
  tree: ProjectTree,
  found: readonly string[],
  breathe: Breath,
): Promise<{ manifests: PackageManifest[]; problems: Analysis["problems"] }> {
  const names = [...found].sort((a, b) => depthOf(a) - depthOf(b) || (a < b ? -1 : 1));
  const problems: Analysis["problems"] = [];
  const manifests: PackageManifest[] = [];
  for (const file of names.slice(0, MAX_MANIFESTS)) {
    const text = tree.text(file);
    const read = text === undefined ? undefined : readManifest(file, text);
    if (read?.problem !== undefined) problems.push({ file, message: read.problem });
    if (read && !isPartOfCmake(read.manifest, manifests)) manifests.push(read.manifest);
    await breathe();
  }
  if (names.length > MAX_MANIFESTS)
    problems.push({ file: ".", message: `only ${MAX_MANIFESTS} of ${names.length} package files were read` });
  return { manifests, problems };
}

/** The questions asked of every file by its name. */
const QUESTIONS = {
  manifests: isManifest,
  signs: maybeSign,
  tests: isTestFile,
  notable: (file: string) => NOTABLE.test(file),
  styles: (file: string) => /\.(?:css|scss|sass|less)$/.test(file),
};
type Picked = Record<keyof typeof QUESTIONS, string[]>;

/** The files that fit each question, found in one pass without blocking the thread. */
async function pick(files: readonly string[], questions: typeof QUESTIONS, breathe: Breath): Promise<Picked> {
  const picked: Picked = { manifests: [], signs: [], tests: [], notable: [], styles: [] };
  const asked = Object.entries(questions) as [keyof Picked, (file: string) => boolean][];
  for (const file of files) {
    for (const [name, fits] of asked) if (fits(file)) picked[name].push(file);
    const pause = breathe();
    if (pause) await pause;
  }
  return picked;
}

/** Below a top-level CMake file, each further one describes a part of the same build. */
const isPartOfCmake = ({ kind, folder }: PackageManifest, before: readonly PackageManifest[]) =>
  kind === "cmake" && folder !== "." && before.some((one) => one.kind === "cmake" && one.folder === ".");

interface ViewDeps {
  tree: ProjectTree;
  files: readonly string[];
  picked: Picked;
  manifests: readonly PackageManifest[];
  languages: readonly string[];
}

function viewOf({ tree, files, picked, manifests, languages }: ViewDeps): ProjectView {
  const all = new Set(files);
  const read = (file: string) => {
    if (!all.has(file)) return undefined;
    const target = tree.linked(file) ?? file;
    return all.has(target) ? tree.text(target) : undefined;
  };
  let folders: ReadonlySet<string> | undefined;
  const ciFiles = picked.notable.filter((file) => CI_FILES.test(file)).slice(0, MAX_CI_FILES);
  return {
    manifests: mainOf(manifests),
    all: manifests,
    languages,
    testFiles: picked.tests,
    ci: ciFiles.map((file) => read(file) ?? "").join("\n"),
    has: (file) => all.has(file),
    hasFolder: (folder) => {
      folders ??= foldersOf(files);
      return folder === "." || folders.has(folder);
    },
    named: (pattern) => picked.notable.filter((file) => pattern.test(file)),
    read,
  };
}

function foldersOf(files: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of files)
    for (let end = file.lastIndexOf("/"); end > 0 && !folders.has(file.slice(0, end)); end = file.lastIndexOf("/", end - 1))
      folders.add(file.slice(0, end));
  return folders;
}

const unique = (names: readonly string[]) => [...new Set(names)];
const depthOf = (file: string) => file.split("/").length;
