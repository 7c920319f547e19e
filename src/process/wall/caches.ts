import { closeSync, type Dirent, existsSync, lstatSync, mkdirSync, opendirSync, openSync, readdirSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import type { Grant } from "./profile.ts";

interface Cache {
  /** Relative to the home; without it the cache exists only where `variable` names it. */
  path?: string;
  /** The program it belongs to. Without one it is open wherever it exists. */
  program?: string;
  /** The file in a project that fetches and runs the program without installing it. */
  wrapper?: string;
  /** The variable by which the user moved it, or its parent, elsewhere. */
  variable?: string;
  /** Its name inside the folder that the variable names. */
  instead?: string;
}

/** The caches of package managers and toolchains. None of them is on a PATH. */
const CACHES: readonly Cache[] = [
  { path: ".cache", program: "sh", variable: "XDG_CACHE_HOME" },
  { path: ".npm", program: "npm", variable: "npm_config_cache" },
  { path: ".yarn", program: "yarn", variable: "YARN_CACHE_FOLDER" },
  { path: ".local/share/pnpm/store", program: "pnpm", variable: "PNPM_HOME", instead: "store" },
  { path: ".local/state/pnpm", program: "pnpm" },
  { path: ".pnpm-store" },
  { path: ".bun/install/cache", program: "bun" },
  { path: ".cargo/registry", program: "cargo", variable: "CARGO_HOME", instead: "registry" },
  { path: ".cargo/git", program: "cargo", variable: "CARGO_HOME", instead: "git" },
  { path: "go/pkg", program: "go", variable: "GOPATH", instead: "pkg" },
  ...["GOMODCACHE", "GOCACHE", "PIP_CACHE_DIR", "UV_CACHE_DIR"].map((variable) => ({ variable, program: "sh" })),
  { path: ".m2/repository", program: "mvn", wrapper: "mvnw" },
  { path: ".m2/wrapper", program: "mvn", wrapper: "mvnw" },
  ...[
    "caches",
    "daemon",
    "native",
    "wrapper",
    "notifications",
    "workers",
    "jdks",
    ".tmp",
    "kotlin-profile",
    "undefined-build",
  ].map((name) => ({
    ...{ path: `.gradle/${name}`, program: "gradle", wrapper: "gradlew" },
    ...{ variable: "GRADLE_USER_HOME", instead: name },
  })),
  { path: ".konan" },
  { path: ".ivy2", program: "sbt" },
  { path: ".nuget/packages", program: "dotnet", variable: "NUGET_PACKAGES" },
  { path: ".gem" },
  { path: ".bundle/cache" },
  { path: ".composer/cache" },
  { path: ".node-gyp" },
  { path: ".electron" },
  { path: ".hex", program: "mix", variable: "HEX_HOME" },
  ...["hosted", "hosted-hashes", "git", "_temp"].map((name) => ({
    ...{ path: `.pub-cache/${name}`, program: "dart" },
    ...{ variable: "PUB_CACHE", instead: name },
  })),
  ...["downloads", "tmp", "update-hashes"].map((name) => ({
    ...{ path: `.rustup/${name}`, program: "rustup" },
    ...{ variable: "RUSTUP_HOME", instead: name },
  })),
];

/** Cargo's lock files, beside its caches. */
const CARGO_LOCKS = [".package-cache", ".package-cache-mutate", ".global-cache"];

/** Toolchain folders: new toolchains can be added, but existing ones cannot be changed, since the user runs them. */
const TOOLCHAINS: readonly Cache[] = [
  { path: ".rustup/toolchains", program: "rustup", variable: "RUSTUP_HOME", instead: "toolchains" },
  ...["pnpm", "@pnpm+exe"].map((name) => ({
    ...{ path: `.local/share/pnpm/.tools/${name}`, program: "pnpm" },
    ...{ variable: "PNPM_HOME", instead: `.tools/${name}` },
  })),
  { path: ".local/share/uv/python", program: "uv", variable: "UV_PYTHON_INSTALL_DIR" },
  { path: ".local/share/uv/tools", program: "uv", variable: "UV_TOOL_DIR" },
];

/** The files in a project's folder that show which programs it needs. */
const MANIFESTS: Record<string, readonly string[]> = {
  npm: ["package.json"],
  yarn: ["yarn.lock", ".yarnrc.yml"],
  pnpm: ["pnpm-lock.yaml", "pnpm-workspace.yaml"],
  bun: ["bun.lock", "bun.lockb"],
  cargo: ["Cargo.toml"],
  rustup: ["Cargo.toml", "rust-toolchain.toml", "rust-toolchain"],
  go: ["go.mod", "go.work"],
  mvn: ["pom.xml"],
  gradle: ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
  sbt: ["build.sbt"],
  mix: ["mix.exs"],
  dart: ["pubspec.yaml"],
  uv: ["uv.lock", "pyproject.toml"],
};
/** Programs that are started under another name. */
const STARTED_BY: Record<string, RegExp> = { npm: /np[mx]/, rustup: /rust|cargo/, dart: /dart|flutter/, uv: /uvx?/ };
/** Scripts and task runners, which may start any program. */
const STARTS_OTHERS =
  /(?:^|[\s;&|(])(?:\.{0,2}\/\S|(?:ba|da|z)?sh\s+[^\s-]|(?:source|g?make|ninja|just|task|tox|nox|rake|invoke|pre-commit|bazel)\b)/;
/** How much of a command is searched for programs' names. */
const MAX_SEARCHED = 20_000;

/** Entries of ~/.cache that the user's shell or editor runs when it starts. */
const RUN_AT_START =
  /^\.?(?:p10k-|zcompdump|(?:zsh|zinit|zgenom|antidote|antibody|sheldon|oh-my-zsh|prezto|gitstatus|starship|carapace|zoxide|fish|bash|nushell|wal|n?vim|emacs|doom)(?:$|[-._]))/;

const PROGRAMS_CACHE_MS = 10_000;

export interface CachesDeps {
  userHome: string;
  env: NodeJS.ProcessEnv;
}

/** The command that is to run, and the folder of its project. */
export interface CacheUse {
  project: string | undefined;
  argv: readonly string[];
}

/** Finds the caches that a command may write, and the parts of them that it may not. */
export function createCaches(deps: CachesDeps): (use: CacheUse) => Grant[] {
  const isInstalled = createProgramSearch(deps.env);
  const used = new Set<string>();
  return (use) => openCaches({ ...deps, ...use, isInstalled, used });
}

interface OpenCaches extends CachesDeps, CacheUse {
  isInstalled: (program: string) => boolean;
  /** The programs whose caches had content. */
  used: Set<string>;
}

/**
 * A program's caches are open if they have content, if the project or the command is about it, or if the command may start
 * anything. Then missing ones are created where it is installed. Each open cache is a mount, which costs every command time.
 */
function openCaches({ userHome, env, project, argv, isInstalled, used }: OpenCaches): Grant[] {
  const text = argv.join(" ").slice(0, MAX_SEARCHED);
  const isInProject = (name: string | undefined) =>
    name !== undefined && project !== undefined && existsSync(join(project, name));
  const startsOthers = STARTS_OTHERS.test((argv.at(-1) ?? "").slice(0, MAX_SEARCHED));
  const isWanted = (program: string) =>
    startsOthers ||
    program === "sh" ||
    (STARTED_BY[program]?.test(text) ?? text.includes(program)) ||
    MANIFESTS[program]?.some(isInProject) === true;
  const folderOf = ({ path, variable, instead }: Cache): string | undefined => {
    const named = variable === undefined ? undefined : folderIn(env[variable], userHome);
    if (named !== undefined) return join(named, instead ?? "");
    return path === undefined ? undefined : join(userHome, path);
  };
  const all = [...CACHES, ...TOOLCHAINS].flatMap((cache) => {
    const folder = folderOf(cache);
    return folder === undefined ? [] : [{ cache, folder, exists: existsSync(folder) }];
  });
  for (const { cache, folder, exists } of all)
    if (exists && cache.program !== undefined && !used.has(cache.program) && hasContent(folder)) used.add(cache.program);
  const wanted = new Map<string, boolean>();
  const isOpen = ({ program }: Cache) => {
    if (program === undefined || used.has(program)) return true;
    const known = wanted.get(program) ?? isWanted(program);
    wanted.set(program, known);
    return known;
  };
  const opened = all.filter(
    ({ cache, folder, exists }) =>
      (isOpen(cache) || isInProject(cache.wrapper)) &&
      (exists || (((cache.program !== undefined && isInstalled(cache.program)) || isInProject(cache.wrapper)) && make(folder))),
  );
  const isToolchain = ({ cache }: { cache: Cache }) => TOOLCHAINS.includes(cache);
  const toolchains = opened.filter(isToolchain).flatMap(({ folder }) => (isExtensible(folder) ? [folder] : []));
  const folders = [...opened.filter((each) => !isToolchain(each)).map(({ folder }) => folder), ...toolchains];
  // A command could replace a cache inside another by a link, so only the outer path is resolved.
  const outer = folders.filter((path) => !folders.some((other) => other !== path && isWithin(other, path)));
  const open = [
    ...outer.map((path) => realOf(path)),
    ...(isInstalled("cargo") && isOpen({ program: "cargo" }) ? locksOf(userHome, env) : []),
  ].filter((path) => !isWithin(path, userHome));
  return [
    ...[...new Set(open)].map((path) => ({ path, write: true })),
    ...runAtStart(realOf(folderIn(env.XDG_CACHE_HOME, userHome) ?? join(userHome, ".cache"))).map((path) => ({
      path,
      write: false,
    })),
    ...toolchains.map((path) => realOf(path)).flatMap((folder) => installedIn(folder).map((path) => ({ path, write: false }))),
  ];
}

const runAtStart = (folder: string): string[] =>
  entriesOf(folder).flatMap((entry) =>
    RUN_AT_START.test(entry.name) && !entry.isSymbolicLink() ? [join(folder, entry.name)] : [],
  );

/** A link cannot be mounted over, so a command could replace it: a folder that contains one stays read-only. */
function isExtensible(folder: string): boolean {
  return entriesOf(folder).every((entry) => !entry.isSymbolicLink());
}

function hasContent(folder: string): boolean {
  try {
    const open = opendirSync(folder, { bufferSize: 1 });
    try {
      return open.readSync() !== null;
    } finally {
      open.closeSync();
    }
  } catch {
    // Not a folder, or inaccessible to IO and therefore to commands.
    return false;
  }
}

/** The toolchains in a folder, without their manager's lock and temporary files. */
function installedIn(folder: string): string[] {
  return entriesOf(folder).flatMap(({ name }) => (name.startsWith(".") ? [] : [join(folder, name)]));
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Not a folder, or inaccessible to IO and therefore to commands.
    return [];
  }
}

function locksOf(userHome: string, env: NodeJS.ProcessEnv): string[] {
  const folder = folderIn(env.CARGO_HOME, userHome) ?? join(userHome, ".cargo");
  return CARGO_LOCKS.map((name) => join(folder, name)).filter((path) => {
    if (!existsSync(path) && existsSync(folder)) makeFile(path);
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
  });
}

/** The path that a variable names, unless it would expose too much. */
function folderIn(value: string | undefined, userHome: string): string | undefined {
  if (!value || !isAbsolute(value)) return undefined;
  const isOfTheSystem = (path: string) => SYSTEM.some((folder) => isWithin(folder, path)) && !INSTALLED_BESIDE.test(path);
  const tooMuch = (path: string) => isWithin(path, userHome) || isOfTheSystem(path);
  return tooMuch(resolve(value)) || tooMuch(realOf(value)) ? undefined : resolve(value);
}

/** Where container images keep a toolchain, such as /usr/local/cargo. */
const INSTALLED_BESIDE = /^\/usr\/local\/(?!(?:s?bin|lib\w*|etc|share|include|man|src|games)(?:\/|$))[^/]+/;
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/boot", "/dev", "/proc", "/sys"];

/** Whether a program is installed. The answer only decides which missing folders are created, so it may be a little old. */
function createProgramSearch({ PATH = "" }: NodeJS.ProcessEnv): (program: string) => boolean {
  const folders = [...new Set(PATH.split(delimiter))].filter((folder) => isAbsolute(folder));
  let known = { at: 0, found: new Map<string, boolean>() };
  return (program) => {
    if (performance.now() - known.at > PROGRAMS_CACHE_MS) known = { at: performance.now(), found: new Map() };
    const found = known.found.get(program) ?? folders.some((folder) => existsSync(join(folder, program)));
    known.found.set(program, found);
    return found;
  };
}

function make(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    return true;
  } catch {
    // If IO may not create it, no command may either.
    return false;
  }
}

function makeFile(path: string): void {
  try {
    closeSync(openSync(path, "wx"));
  } catch {
    // IO may not create it, or cargo created it meanwhile.
  }
}
