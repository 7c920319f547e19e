import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import { z } from "zod";
import { isExecutable } from "../lib/is-executable.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import { statsAt } from "../lib/stats-at.ts";
import { isWithin } from "../lib/within.ts";

/** Where a package manager is started. */
export interface ManagerPlace {
  /** The top of the tree, and the folder that it works in. */
  top: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
}

/** The package manager that a project asks for, or one that is installed. */
interface Manager {
  name: string;
  version: string;
}

const Manifest = z.object({ name: z.string(), version: z.string(), packageManager: z.string() }).partial();
const LARGEST = 1_000_000;

function manifestIn(folder: string): z.infer<typeof Manifest> | undefined {
  try {
    return Manifest.parse(JSON.parse(smallTextAt(join(folder, "package.json"), LARGEST) ?? ""));
  } catch {
    // There is none, or it says nothing of use.
    return undefined;
  }
}

/** A folder of a tree and those above it. */
function upTo(top: string, folder: string): string[] {
  return folder === top || !isWithin(top, folder) ? [folder] : [folder, ...upTo(top, dirname(folder))];
}

/** What the nearest `packageManager` asks for. */
function askedFor({ top, cwd }: ManagerPlace): Manager | undefined {
  const asked = upTo(top, cwd).map((folder) => manifestIn(folder)?.packageManager);
  const [, name, version] = /^([a-z]+)@(\d+\.[\w.-]+)/.exec(asked.find((each) => each !== undefined) ?? "") ?? [];
  return name && version ? { name, version } : undefined;
}

/** The version of a package manager that npm installed; undefined for any other, such as one of Corepack's. */
function installed(name: string, { PATH = "" }: NodeJS.ProcessEnv): Manager | undefined {
  const found = PATH.split(delimiter).find((folder) => isAbsolute(folder) && isExecutable(join(folder, name)));
  if (found === undefined) return undefined;
  const program = realOf(join(found, name));
  const manifest = [dirname(dirname(program)), dirname(program)].map(manifestIn).find((each) => each?.name === name);
  return manifest?.version === undefined ? undefined : { name, version: manifest.version };
}

const nameOf = ({ name, version }: Manager) => `${name}@${version}`;

/** Why a package manager that is installed starts nothing in a project: the project asks for another one. */
export function refusalOf(tool: string, at: ManagerPlace): string | undefined {
  if (tool !== "yarn" && tool !== "pnpm") return undefined;
  const asked = askedFor(at);
  const here = asked && installed(tool, at.env);
  if (!here) return undefined;
  const isRefused =
    tool === "yarn"
      ? /^[01]\./.test(here.version) && !(asked.name === "yarn" && /^[01]\./.test(asked.version)) && !hasOwnYarn(at)
      : asked.name !== "pnpm" && Number.parseInt(here.version, 10) >= 9;
  return isRefused ? `package.json asks for ${nameOf(asked)}, and ${nameOf(here)} is here` : undefined;
}

/** Whether the project brings its own Yarn, which an installed one then starts. */
function hasOwnYarn({ top, cwd }: ManagerPlace): boolean {
  const says = (folder: string, file: string, setting: RegExp) => setting.test(smallTextAt(join(folder, file), LARGEST) ?? "");
  return upTo(top, cwd).some((folder) => says(folder, ".yarnrc.yml", /^yarnPath:/m) || says(folder, ".yarnrc", /^yarn-path /m));
}

/** Makes pnpm use its own version: 9.0 and 9.1 would refuse another one, 10 downloads it, 11 has a setting of its own for both. */
const AS_IT_IS = {
  npm_config_manage_package_manager_versions: "false",
  npm_config_package_manager_strict: "false",
  pnpm_config_pm_on_fail: "ignore",
};

/**
 * How pnpm runs in the version that is here, if the project asks for another one that it has not downloaded. Without the network
 * it would try for a minute, for every command.
 */
export function withInstalledPnpm(at: ManagerPlace): { env: NodeJS.ProcessEnv; why: string } | undefined {
  const asked = askedFor(at);
  const here = asked?.name === "pnpm" ? installed("pnpm", at.env) : undefined;
  if (!asked || !here || here.version === asked.version) return undefined;
  const { HOME = "", XDG_DATA_HOME, PNPM_HOME } = at.env;
  const data = process.platform === "darwin" ? join(HOME, "Library") : (XDG_DATA_HOME ?? join(HOME, ".local", "share"));
  const downloaded = join(PNPM_HOME ?? join(data, "pnpm"), ".tools", "pnpm", basename(asked.version));
  if (statsAt(downloaded)) return undefined;
  return { env: AS_IT_IS, why: `package.json asks for ${nameOf(asked)}; ran with ${nameOf(here)}, which is here` };
}

/** A package manager's command for a person, in the version that the project asks for. */
export function inAskedVersion([program, ...args]: readonly string[], at: ManagerPlace): string | undefined {
  const asked = askedFor(at);
  const here = asked && program === asked.name ? installed(asked.name, at.env) : undefined;
  if (!asked || !here || here.version === asked.version) return undefined;
  const isModern = asked.name === "yarn" && !/^[01]\./.test(asked.version);
  return `npx --yes ${isModern ? "@yarnpkg/cli-dist" : asked.name}@${asked.version} ${args.join(" ")}`;
}
