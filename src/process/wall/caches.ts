import { closeSync, type Dirent, existsSync, lstatSync, mkdirSync, openSync, readdirSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import type { Grant } from "./profile.ts";

interface Cache {
  /** Relative to the home; without it the cache exists only where `variable` names it. */
  path?: string;
  /** The program it belongs to: where that is installed, a missing cache is created. */
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

/** Entries of ~/.cache that the user's shell or editor runs when it starts. */
const RUN_AT_START =
  /^\.?(?:p10k-|zcompdump|(?:zsh|zinit|zgenom|antidote|antibody|sheldon|oh-my-zsh|prezto|gitstatus|starship|carapace|zoxide|fish|bash|nushell|wal|n?vim|emacs|doom)(?:$|[-._]))/;

export interface CachesDeps {
  userHome: string;
  env: NodeJS.ProcessEnv;
  project?: string | undefined;
}

/** The caches that a command may write, created if missing, and the parts of them that it may not. */
export function openCaches({ userHome, env, project }: CachesDeps): Grant[] {
  const isUsed = ({ program, wrapper }: Cache) =>
    (program !== undefined && isInstalled(program, env)) ||
    (wrapper !== undefined && project !== undefined && existsSync(join(project, wrapper)));
  const made = (cache: Cache): string[] => {
    const { path, variable, instead } = cache;
    const named = variable === undefined ? undefined : folderIn(env[variable], userHome);
    if (named === undefined && path === undefined) return [];
    const folder = named === undefined ? join(userHome, path!) : join(named, instead ?? "");
    if (!existsSync(folder) && isUsed(cache)) make(folder);
    return existsSync(folder) ? [folder] : [];
  };
  const toolchains = TOOLCHAINS.flatMap(made).filter(isExtensible);
  const folders = [...CACHES.flatMap(made), ...toolchains];
  // A command could replace a cache inside another by a link, so only the outer path is resolved.
  const outer = folders.filter((path) => !folders.some((other) => other !== path && isWithin(other, path)));
  const open = [...outer.map((path) => realOf(path)), ...locksOf(userHome, env)].filter((path) => !isWithin(path, userHome));
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
  if (!isInstalled("cargo", env)) return [];
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

function isInstalled(program: string, { PATH = "" }: NodeJS.ProcessEnv): boolean {
  return PATH.split(delimiter).some((folder) => isAbsolute(folder) && existsSync(join(folder, program)));
}

function make(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch {
    // If IO may not create it, no command may either.
  }
}

function makeFile(path: string): void {
  try {
    closeSync(openSync(path, "wx"));
  } catch {
    // IO may not create it, or cargo created it meanwhile.
  }
}
