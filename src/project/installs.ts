import { dirname, join } from "node:path";
import { smallTextAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import { statsAt } from "../lib/stats-at.ts";
import { packageSectionsOf, pythonPackages } from "./python-packages.ts";

/** How to install what one file requires: argument lists to run in order in the file's folder. */
export interface Way {
  file: string;
  commands: readonly (readonly [program: string, ...args: string[]])[];
  /** What this creates beside the file; nothing if the tool keeps downloads in a cache of the user's. */
  makes: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/** One thing to install in a project. */
export interface Install extends Way {
  /** The folder of the file, relative to the top; "." for the top itself. */
  folder: string;
}

/** Access to the files beside the one that a way is for. */
interface Beside {
  /** Whether a file is beside it. */
  has: (name: string) => boolean;
  /** The text of a file beside it, or "". */
  text: (name: string) => string;
}
type WayOf = (beside: Beside) => Way["commands"];

interface Row {
  file: string;
  commands: WayOf;
  makes: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** It names no versions: it counts only if nothing is installed and there is no lock file for it. */
  isLoose?: true;
}

const NODE = ["node_modules"];
const VENV = ".venv";
const always =
  (...commands: Way["commands"]): WayOf =>
  () =>
    commands;

/** Files with what a Python project's tests need besides `requirements.txt`. */
const MORE_REQUIREMENTS = [
  ...["requirements-dev.txt", "requirements-test.txt", "requirements-tests.txt", "dev-requirements.txt"],
  ...["test-requirements.txt", "requirements_dev.txt", "requirements_test.txt", "requirements/dev.txt", "requirements/test.txt"],
];

/** The environment of a Python project without a lock file. It sees what the machine has, as before there was one. */
const looseForPython: WayOf = ({ has, text }) => {
  const files = MORE_REQUIREMENTS.filter(has).flatMap((name) => ["-r", name]);
  const packages = pythonPackages(text);
  if (!packages && files.length === 0) return [];
  const own = packages?.own === undefined ? [] : ["-e", packages.own];
  const pip = [`${VENV}/bin/python`, "-m", "pip", "install", "-q", "--disable-pip-version-check"] as const;
  return [
    ["python3", "-m", "venv", "--system-site-packages", VENV],
    [...pip, ...own, ...(packages?.more ?? []), ...files],
  ];
};

/** By ecosystem: the first file that exists decides. */
const ECOSYSTEMS: readonly (readonly Row[])[] = [
  [
    { file: "pnpm-lock.yaml", makes: NODE, commands: always(["pnpm", "install", "--frozen-lockfile"]) },
    {
      file: "yarn.lock",
      makes: [...NODE, ".pnp.cjs", ".pnp.loader.mjs"],
      commands: ({ text }) =>
        isYarnClassic(text("yarn.lock"))
          ? [["yarn", "install", "--frozen-lockfile", "--non-interactive"]]
          : [["yarn", "install", "--immutable"]],
    },
    { file: "bun.lock", makes: NODE, commands: always(["bun", "install", "--frozen-lockfile"]) },
    { file: "bun.lockb", makes: NODE, commands: always(["bun", "install", "--frozen-lockfile"]) },
    { file: "package-lock.json", makes: NODE, commands: always(["npm", "ci", "--no-audit", "--no-fund"]) },
    { file: "npm-shrinkwrap.json", makes: NODE, commands: always(["npm", "ci", "--no-audit", "--no-fund"]) },
    {
      file: "package.json",
      makes: NODE,
      isLoose: true,
      commands: ({ text }) =>
        asksForPackages(text("package.json")) ? [["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]] : [],
    },
  ],
  [
    { file: "uv.lock", makes: [VENV], commands: always(["uv", "sync", "--frozen"]) },
    {
      file: "poetry.lock",
      makes: [VENV],
      commands: always(["poetry", "install", "--no-interaction"]),
      env: { POETRY_VIRTUALENVS_IN_PROJECT: "true" },
    },
    { file: "pdm.lock", makes: [VENV], commands: always(["pdm", "sync"]) },
    {
      file: "Pipfile.lock",
      makes: [VENV],
      commands: always(["pipenv", "sync", "--dev"]),
      env: { PIPENV_VENV_IN_PROJECT: "1" },
    },
    {
      file: "requirements.txt",
      makes: [VENV],
      commands: ({ has }) => {
        const files = ["requirements.txt", ...MORE_REQUIREMENTS.filter(has)].flatMap((name) => ["-r", name]);
        const pip = [`${VENV}/bin/python`, "-m", "pip", "install", "-q", "--disable-pip-version-check", ...files] as const;
        return [["python3", "-m", "venv", VENV], pip];
      },
    },
    ...["pyproject.toml", "setup.py", "setup.cfg", ...MORE_REQUIREMENTS].map(
      (file): Row => ({ file, makes: [VENV], isLoose: true, commands: looseForPython, env: { PIP_RETRIES: "2" } }),
    ),
  ],
  [
    {
      file: "go.sum",
      makes: [],
      commands: ({ has }) => (has("vendor/modules.txt") ? [] : [["go", "mod", "download"]]),
    },
  ],
  [{ file: "Cargo.lock", makes: [], commands: always(["cargo", "fetch", "--locked"]) }],
  [
    {
      file: "pom.xml",
      makes: [],
      commands: ({ has }) => [[has("mvnw") ? "./mvnw" : "mvn", "-q", "-B", "dependency:go-offline"]],
    },
    ...["gradle.lockfile", "build.gradle.kts", "build.gradle"].map(
      (file): Row => ({
        file,
        makes: [],
        commands: ({ has }) => [[has("gradlew") ? "./gradlew" : "gradle", "-q", "--no-daemon", "dependencies"]],
      }),
    ),
  ],
  [
    {
      file: "Gemfile.lock",
      makes: ["vendor/bundle", ".bundle"],
      commands: always(["bundle", "config", "set", "--local", "path", "vendor/bundle"], ["bundle", "install"]),
      env: { BUNDLE_FROZEN: "true" },
    },
  ],
  [{ file: "composer.lock", makes: ["vendor"], commands: always(["composer", "install", "--no-interaction", "--no-progress"]) }],
  [{ file: "mix.lock", makes: ["deps"], commands: always(["mix", "deps.get", "--check-locked"]) }],
];

const ROWS = ECOSYSTEMS.flat();
const isYarnClassic = (lock: string) => !/^__metadata:/m.test(lock);

/** Other files that affect what is installed. */
const SETTINGS = [
  ...["package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml"],
  ...[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    ".python-version",
    "go.mod",
    "Cargo.toml",
    "Gemfile",
    "composer.json",
    "mix.exs",
  ],
  ...MORE_REQUIREMENTS,
];
const LARGEST = 20_000_000;

/** Whether a file says what to install in its folder. */
export const asksForInstall = (name: string): boolean => ROWS.some(({ file, isLoose }) => file === name && !isLoose);

/** What to install for work in these folders: for each ecosystem, what the nearest file at or above a folder requires. */
export function findInstalls(top: string, folders: readonly string[]): Install[] {
  const found = new Map<string, Install>();
  for (const folder of folders) {
    const around = withAncestors(folder);
    for (const rows of ECOSYSTEMS) {
      const nearest = around.map((each) => installIn(top, each, rows.filter(isLock))).find((each) => each !== undefined);
      const install = nearest ?? around.map((each) => installIn(top, each, rows)).find((each) => each !== undefined);
      if (install && install.commands.length > 0) found.set(join(install.folder, install.file), install);
    }
  }
  return [...found.values()];
}

const isLock = ({ isLoose }: Row) => !isLoose;

/** What a folder's own files require and is not installed at all. */
export function notInstalledIn(folder: string): Install[] {
  const isThere = (name: string) => statsAt(join(folder, name)) !== undefined;
  return findInstalls(folder, ["."]).filter(({ makes }) => makes.length > 0 && !makes.some(isThere));
}

/** Whether it counts only if nothing is installed yet. */
export const isLoose = ({ file }: Install): boolean => ROWS.some((row) => row.file === file && row.isLoose === true);

function installIn(top: string, folder: string, rows: readonly Row[]): Install | undefined {
  const at = join(top, folder);
  // A link in the repository may lead anywhere.
  if (realOf(at) !== join(realOf(top), folder)) return undefined;
  const has = (name: string) => statsAt(join(at, name))?.isFile() === true;
  const row = rows.find(({ file }) => has(file));
  if (!row) return undefined;
  const { file, makes, env } = row;
  const commands = row.commands({ has, text: (name) => smallTextAt(join(at, name), LARGEST) ?? "" });
  return { folder, file, commands, makes, ...(env && { env }) };
}

/** Everything that determines what is installed, and from where. */
export function inputsOf(top: string, { folder, file, commands }: Install): string[] {
  const texts = [file, ...SETTINGS].map((name) => smallTextAt(join(top, folder, name), LARGEST) ?? "");
  return [process.platform, process.arch, folder, JSON.stringify(commands), ...texts];
}

/** A file whose text decides what an install brings, relative to the top. */
export interface InstallInput {
  path: string;
  /** The part of the text that decides. */
  read: (text: string) => string;
}

const whole = (text: string) => text;

/**
 * The files whose changes require another install. A manifest beside a lock file counts only with the packages it names, since
 * most of its changes are others. Build files without locks are left to the build.
 */
export function installInputs({ folder, file, makes }: Install): InstallInput[] {
  if (makes.length === 0 && !/lock|\.sum$/i.test(file)) return [];
  const at = (name: string, read = whole): InstallInput => ({ path: join(folder, name), read });
  if (file === "requirements.txt") return [file, ...MORE_REQUIREMENTS].map((name) => at(name));
  const own = file === "package.json" ? [] : [at(file, file === "pyproject.toml" ? packageSectionsOf : whole)];
  return makes.includes("node_modules") ? [...own, at("package.json", packagesIn)] : own;
}

/** The command as a person would type it in the project. */
export function shellCommandOf({ folder, commands }: Install): string {
  const words = commands.map((command) => command.join(" ")).join(" && ");
  return folder === "." ? words : `cd ${folder} && ${words}`;
}

/** A folder and those above it, the nearest first. */
function withAncestors(folder: string): string[] {
  const path = folder === "" ? "." : folder;
  return path === "." ? [path] : [path, ...withAncestors(dirname(path))];
}

const PACKAGES = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "workspaces", "overrides"];

/** The parts of a package file that concern packages, as one text. */
function packagesIn(manifest: string): string {
  try {
    const read: unknown = JSON.parse(manifest);
    const entries = typeof read === "object" && read !== null ? Object.entries(read) : [];
    return JSON.stringify(entries.filter(([key]) => PACKAGES.includes(key)));
  } catch {
    // A file that is not JSON requires nothing.
    return "[]";
  }
}

function asksForPackages(manifest: string): boolean {
  try {
    const read: unknown = JSON.parse(manifest);
    if (typeof read !== "object" || read === null) return false;
    return Object.entries(read).some(
      ([key, value]) =>
        ["dependencies", "devDependencies", "workspaces"].includes(key) &&
        typeof value === "object" &&
        value !== null &&
        Object.keys(value).length > 0,
    );
  } catch {
    // A file that is not JSON requires nothing.
    return false;
  }
}
