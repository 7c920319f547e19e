import { chmodSync, existsSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import isAtLeast from "semver/functions/gte.js";
import { createEngine } from "../engine/engine.ts";
import { SettingError } from "../engine/models/failures.ts";
import { type Choice, chooseEngine } from "../engine/models/ladder.ts";
import { findingOf, tryModel } from "../engine/models/trial.ts";
import type { Engine, EngineStatus } from "../engine/port.ts";
import { createImproviser } from "../engine/rehearsal/improvise.ts";
import { loadRules } from "../engine/rehearsal/rules.ts";
import { untestedNote } from "../engine/runtime/tested-versions.ts";
import { type Config, loadConfig } from "../home/config.ts";
import { findDaemon } from "../home/daemon-file.ts";
import { modeFrom } from "../home/modes.ts";
import { whyNeverCounts } from "../home/open-arguments.ts";
import type { Paths } from "../home/paths.ts";
import type { ApprovalRule } from "../home/safety-config.ts";
import { messageOf } from "../lib/errors.ts";
import { createLog } from "../lib/log.ts";
import { packageRoot } from "../lib/package-root.ts";
import { createRedactor } from "../lib/redact.ts";
import { nearestExisting, obstacleTo } from "../lib/writable.ts";
import { exec } from "../process/exec.ts";
import { findPrograms } from "../process/programs.ts";
import type { DoctorReport, Finding } from "../protocol/doctor.ts";
import type { ModelCall, Spender } from "../protocol/usage.ts";
import { findFaults } from "../store/integrity.ts";
import { lockHolder } from "../store/lock.ts";
import { recordAside } from "../store/usage-aside.ts";
import { unlessAborted } from "./abort.ts";
import { type ConnectionFindingsDeps, findClients, findMcpServers, findTokens } from "./connection-findings.ts";
import { withScratchFolder } from "./scratch.ts";
import { findMissingSquadFolders } from "./squad-folders.ts";
import { findTelegram } from "./telegram-finding.ts";
import { proveSandbox } from "./wall-proof.ts";

export interface DoctorDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  /** Who asks the model, for the usage record. */
  actor?: "doctor" | "setup";
  /** The config to try, if not the one in the file. */
  settings?: Config;
  /** Fix what can be fixed without asking. */
  fix?: boolean;
  /** The MCP servers as a running daemon knows them; missing if none runs. */
  servers?: ConnectionFindingsDeps["servers"];
  /** Writes down what the model was asked. By default it goes into the database, if no daemon has it. */
  record?: (spender: Spender, calls: readonly ModelCall[]) => Promise<void> | void;
  /** Run only this check. */
  only?: string;
  /** Ends the examination; the findings are then incomplete. */
  signal?: AbortSignal;
}

type Examination = (parts: DoctorDeps) => Promise<Finding[]> | Finding[];

/** Checks everything IO needs, with a remedy for each finding. */
export async function examine(parts: DoctorDeps): Promise<DoctorReport> {
  const checks: [string, Examination][] = [
    ["node", node],
    ["config", config],
    ["disk", disk],
    ["modes", modes],
    ["database", database],
    ["squads", ({ paths }) => findMissingSquadFolders(paths)],
    ["port", port],
    ["git", gitProgram],
    ["gh", gh],
    ["sandbox", sandbox],
    ["telegram", telegram],
    ["cluster", cluster],
    ["mcp", (deps) => findMcpServers({ ...deps, config: loadConfig(deps.paths.config) })],
    ["tokens", (deps) => findTokens({ ...deps, config: loadConfig(deps.paths.config) })],
    ["clients", (deps) => findClients({ ...deps, config: loadConfig(deps.paths.config) })],
    ["model", model],
  ];
  const items: Finding[] = [];
  for (const [check, look] of checks.filter(([name]) => parts.only === undefined || parts.only === name)) {
    if (parts.signal?.aborted) break;
    try {
      items.push(...(await look(parts)));
    } catch (error) {
      items.push({
        check,
        state: "failed",
        found: messageOf(error),
        remedy: "Mend what the sentence names, then run io doctor again.",
      });
    }
  }
  return { ok: items.every(({ state }) => state !== "failed"), items };
}

const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });

const node: Examination = () => {
  if (isAtLeast(process.versions.node, "20.19.0")) return [ok("node", `Node ${process.versions.node}`)];
  return [{ check: "node", state: "failed", found: `Node ${process.versions.node}`, remedy: "Install Node 20.19 or newer." }];
};

const config: Examination = ({ paths }) => {
  const { approvalRules } = loadConfig(paths.config);
  const found = ok("config", existsSync(paths.config) ? `${paths.config} is in order` : "no config.json: the defaults hold");
  return [found, ...approvalRules.flatMap(idleRule)];
};

/** A rule that is valid but allows nothing, so that its calls still need approval. */
function idleRule({ tool, match, then }: ApprovalRule, index: number): Finding[] {
  const why = then === "allow" && (tool === "shell" || tool === "*") ? whyNeverCounts(match) : undefined;
  if (why === undefined) return [];
  const found = `approvalRules.${index} (${tool} ${JSON.stringify(match)}: allow) never counts for a command: ${why}`;
  const remedy = "Spell out in config.json what is to be allowed, or take the rule out; docs/approvals.md says what counts.";
  return [{ check: "config", state: "warning", found, remedy }];
}

/** Whether the data folder can be created and written, and how much room is left. */
const disk: Examination = ({ paths }) => {
  const obstacle = obstacleTo(paths.home);
  if (obstacle) {
    const what = existsSync(paths.home) ? "cannot be used" : "cannot be made";
    const remedy = "Mend that, or set IO_HOME to a folder you can write.";
    return [{ check: "disk", state: "failed", found: `the data folder ${paths.home} ${what}: ${obstacle}`, remedy }];
  }
  const { bavail, bsize } = statfsSync(nearestExisting(paths.home));
  const megabytes = Math.round((bavail * bsize) / 1_000_000);
  if (megabytes > 500) return [ok("disk", `${megabytes} MB free`)];
  return [
    {
      check: "disk",
      state: megabytes > 50 ? "warning" : "failed",
      found: `only ${megabytes} MB free`,
      remedy: `Free some space where ${paths.home} lies, or move IO_HOME.`,
    },
  ];
};

const modes: Examination = ({ paths, fix }) => {
  if (!existsSync(paths.home) || !statSync(paths.home).isDirectory()) return [ok("modes", "there is no data folder yet")];
  const wanted: [string, number][] = [
    [paths.home, 0o700],
    [paths.token, 0o600],
    [paths.config, 0o600],
    [paths.database, 0o600],
  ];
  const wrong = wanted.filter(([path, mode]) => existsSync(path) && (statSync(path).mode & 0o777 & ~mode) !== 0);
  if (wrong.length === 0) return [ok("modes", "secrets are readable by you alone")];
  return wrong.map(([path, mode]) => {
    if (fix) chmodSync(path, mode);
    const octal = mode.toString(8);
    return {
      check: "modes",
      state: fix ? "ok" : "failed",
      found: `${path} can be read by others`,
      remedy: `Run io doctor --fix, or chmod ${octal} ${path}.`,
      ...(fix ? { fixed: true } : { mendable: true }),
    };
  });
};

const database: Examination = async ({ paths, signal }) => {
  const check = "database";
  if (!existsSync(paths.database)) return [ok(check, "none yet: it is made at the first start")];
  const faults = await findFaults(paths.database, signal);
  if (faults === undefined)
    return [
      {
        check,
        state: "warning",
        found: "too large to be read whole",
        remedy: "Look with: sqlite3 io.db 'PRAGMA integrity_check'",
      },
    ];
  if (faults.length === 0) return [ok(check, "whole")];
  const remedy = "Stop IO, move io.db away, and put back the newest io.db.before-….bak if there is one.";
  return [{ check, state: "failed", found: faults.join("; "), remedy }];
};

const port: Examination = async ({ paths, env }) => {
  const daemon = findDaemon(paths, lockHolder);
  if (daemon) return [ok("port", `a daemon serves on ${daemon.host}:${daemon.port} (pid ${daemon.pid})`)];
  const settings = loadConfig(paths.config);
  const wanted = env.IO_PORT ? Number(env.IO_PORT) : settings.port;
  const free = await new Promise<boolean>((done) => {
    const probe = createServer();
    probe.once("error", () => done(false));
    probe.listen(wanted, env.IO_HOST || settings.host, () => probe.close(() => done(true)));
  });
  if (free) return [ok("port", `port ${wanted} is free; no daemon runs`)];
  return [
    {
      check: "port",
      state: "failed",
      found: `port ${wanted} is taken by another program`,
      remedy: 'Set "port" in config.json, or IO_PORT, to another one.',
    },
  ];
};

const gitProgram: Examination = async ({ env, paths }) => {
  const found = findPrograms({ env, closed: [paths.home] }).find("git");
  const remedy = "Install git: squads and swarm work in repositories.";
  if (found.path === undefined) return [{ check: "git", state: "failed", found: found.why, remedy }];
  const result = await exec(found.path, ["--version"], { cwd: "/", deadlineMs: 5_000 });
  if (result.code === 0) return [ok("git", result.stdout.trim())];
  return [{ check: "git", state: "failed", found: `${found.path} does not work: ${result.output.slice(0, 200)}`, remedy }];
};

const gh: Examination = async ({ env, paths }) => {
  const { path } = findPrograms({ env, closed: [paths.home] }).find("gh");
  const missing = path === undefined;
  const result = missing ? undefined : await exec(path, ["auth", "status"], { deadlineMs: 5_000 });
  if (result?.code === 0) return [ok("gh", "the GitHub command line is logged in")];
  return [
    {
      check: "gh",
      state: "warning",
      found: missing ? "gh was not found" : "gh is not logged in",
      remedy: missing ? "Install the GitHub CLI if IO is to work with issues and pull requests." : "Run gh auth login.",
    },
  ];
};

/** Whether the commands of a model can be kept away from IO's secrets on this machine. */
const sandbox: Examination = ({ paths, env }) =>
  proveSandbox({ paths, env, settings: { ...loadConfig(paths.config), ...modeFrom(env) } });

const telegram: Examination = ({ paths, env }) => findTelegram({ paths, env, config: loadConfig(paths.config) });

/** Nothing without a cluster: then none of its code is loaded either. */
const cluster: Examination = async ({ paths, env }) => {
  const { cluster: wanted } = loadConfig(paths.config);
  if (!wanted?.enabled) return [];
  const { findCluster } = await import("./cluster-finding.ts");
  return findCluster({ paths, env, cluster: wanted });
};

function runtimeFinding({ version, tested }: EngineStatus["runtime"], env: NodeJS.ProcessEnv): Finding {
  if (tested) return ok("runtime", `the Copilot runtime ${version} starts`);
  const remedy = env.COPILOT_CLI_PATH
    ? "Unset COPILOT_CLI_PATH to use the runtime that came with IO."
    : 'Run "npm install" in IO\'s folder again, which brings the runtime that IO was tested with.';
  return { check: "runtime", state: "warning", found: untestedNote(version), remedy };
}

/** Starts the real runtime in a scratch folder and asks the model as a message would, with a tool. */
export const model: Examination = async ({ paths, env, actor = "doctor", signal, ...given }) => {
  const { record = (spender, calls) => recordAside(paths, spender, calls) } = given;
  const settings: Config = given.settings ?? loadConfig(paths.config);
  let choice: Choice;
  try {
    choice = await chooseEngine(settings, env);
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    return [{ check: "model", state: "failed", found: error.what, remedy: error.remedy }];
  }
  const redactor = createRedactor(secretsIn(choice));
  const log = createLog({ redactor, level: () => "error" });
  const calls: ModelCall[] = [];
  return withScratchFolder("io-doctor-", async (folder) => {
    const engine = await createEngine({
      folder,
      config: () => settings,
      env,
      choice,
      rehearsal: createImproviser(loadRules(paths.home)),
      log,
      clean: redactor.clean,
    });
    try {
      return await unlessAborted(tryEngine(engine, folder), signal);
    } finally {
      await engine.stop();
      await writeDown();
    }
  });

  async function tryEngine(engine: Engine, folder: string): Promise<Finding[]> {
    await engine.start();
    const runtime = runtimeFinding(engine.status().runtime, env);
    const trial = await tryModel(engine, folder, (call) => calls.push(call));
    return [runtime, withoutPaths(findingOf(choice, trial, env), paths)];
  }

  /** A failed write is not the model's fault; the database check reports it. */
  async function writeDown(): Promise<void> {
    try {
      await record({ owner: actor, actor, agent: actor, source: "cli" }, calls);
    } catch (error) {
      log.debug("what the trial used was not written down", { error });
    }
  }
};

function secretsIn({ provider, login }: Choice): (string | undefined)[] {
  return [login?.token, provider?.apiKey, provider?.bearerToken, ...Object.values(provider?.headers ?? {})];
}

/** Hides where IO is installed from what runtimes and providers say. */
function withoutPaths(finding: Finding, { home }: Paths): Finding {
  return { ...finding, found: finding.found.replaceAll(home, "IO's folder").replaceAll(packageRoot, "IO's package") };
}
