import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import compareVersions from "semver/functions/compare.js";
import { loadConfig } from "../home/config.ts";
import { UserError, unavailable } from "../lib/errors.ts";
import { packageRoot } from "../lib/package-root.ts";
import { PACKAGE, packageVersion } from "../lib/version.ts";
import { exec } from "../process/exec.ts";
import { findPrograms } from "../process/programs.ts";
import { NPM_REGISTRY, newestVersion } from "../tools/npm-registry.ts";
import { restartDaemon } from "./daemon.ts";
import { askYesNo, confirm } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const INSTALL_MS = 900_000;

/** `io update`: installs a newer IO, always on a person's request. */
export function updateCommand(program: Command, shell: Shell): void {
  program
    .command("update")
    .description("install the newest version of IO, if you agree")
    .option("--yes", "install it without asking; the daemon is not restarted then")
    .option(...JSON_OPTION)
    .action(async ({ json, yes }: Json & { yes?: boolean }) => {
      const installed = packageVersion();
      const registry = loadConfig(shell.paths.config).updateRegistry ?? NPM_REGISTRY;
      const newest = await newestVersion({ registry, package: PACKAGE, env: shell.env });
      if (newest.version === undefined) throw unavailable(newest.why);
      const { version } = newest;
      const result = { installed, newest: version, updated: false, restarted: false };
      if (compareVersions(version, installed) <= 0) {
        shell.print(result, `IO ${installed} is up to date (published: ${version}).`, { json });
        return;
      }
      const prefix = prefixOf(packageRoot);
      shell.note(`IO ${version} is published at ${registry}; this is ${installed}.`);
      await confirm(shell, `Install IO ${version} into ${prefix}?`, yes);
      await install(shell, { version, registry, prefix });
      const restarted = await offerRestart(shell, yes);
      const next = restarted ? "The daemon runs it." : 'It takes over at the next "io restart".';
      shell.print({ ...result, updated: true, restarted }, `IO ${version} is installed. ${next}`, { json });
    });
}

/** The npm prefix of this installation, so that the update replaces it whatever npm's settings are now. */
function prefixOf(root: string): string {
  const modules = dirname(root);
  if (root.endsWith(join("lib", "node_modules", PACKAGE))) return dirname(dirname(modules));
  throw new UserError(
    `This IO lies in ${root}, which is no global installation by npm, so it is not updated from here. In a checkout: git pull, then npm install. Else: npm install --global ${PACKAGE}`,
  );
}

interface Installation {
  version: string;
  registry: string;
  prefix: string;
}

async function install(shell: Shell, { version, registry, prefix }: Installation): Promise<void> {
  const programs = findPrograms({ env: shell.env, closed: [shell.paths.home] });
  const npm = programs.find("npm");
  if (npm.path === undefined)
    throw new UserError(`IO is installed with npm, and ${npm.why}. Install npm, which comes with Node.js.`);
  const folder = mkdtempSync(join(tmpdir(), "io-update-"));
  try {
    const settings = ["user", "global"].map((name) => `--${name}config=${emptyFile(join(folder, `${name}.npmrc`))}`);
    const where = [`--prefix=${prefix}`, `--registry=${registry}`, `--cache=${join(folder, "cache")}`, ...settings];
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"];
    const args = ["install", "--global", ...quiet, ...where, `${PACKAGE}@${version}`];
    const [file, ...first] = npm.path.endsWith(".js") ? [process.execPath, npm.path] : [npm.path];
    const cwd = join(folder, "empty");
    mkdirSync(cwd);
    const result = await exec(file, [...first, ...args], {
      cwd,
      env: withoutNpmSettings(shell.env),
      deadlineMs: INSTALL_MS,
      maxOutput: 4_000,
    });
    if (result.ending === "exited" && result.code === 0) return;
    const how = result.ending === "exited" ? `npm ended with ${result.code}` : result.ending;
    throw new UserError(`IO ${version} could not be installed (${how}): ${result.output.trim().slice(-1_500)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function emptyFile(path: string): string {
  writeFileSync(path, "", { mode: 0o600 });
  return path;
}

function withoutNpmSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^npm_/i.test(name)));
}

/** Only a person at the terminal can agree to interrupt running work. */
async function offerRestart(shell: Shell, yes: boolean | undefined): Promise<boolean> {
  if (!shell.daemon() || yes || !shell.isTerminal) return false;
  if (!(await askYesNo("Restart the daemon now? What is under way is finished by the new one."))) return false;
  await restartDaemon(shell);
  return true;
}
