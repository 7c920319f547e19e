import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Paths, pathsOf } from "../home/paths.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { usageError } from "../lib/errors.ts";
import { packageRoot } from "../lib/package-root.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import { exec } from "../process/exec.ts";
import { findPrograms } from "../process/programs.ts";
import { labelOf, launchdAgent, type ServiceSpec, systemdUnit, unitName } from "./service-files.ts";

export type ServiceKind = "systemd" | "launchd";

export interface ServiceDeps {
  env: NodeJS.ProcessEnv;
  paths: Paths;
  kind: ServiceKind;
}

export interface ServiceStatus {
  kind: ServiceKind;
  /** The path of the unit or agent, installed or not. */
  path: string;
  installed: boolean;
  /** Whether this version of IO would write the same file. */
  current: boolean;
  /** Null if the service manager cannot be asked. */
  active: boolean | null;
}

const ASK_MS = 15_000;
const DAEMON = ["--daemon", "--background"];

export function kindHere(): ServiceKind {
  if (process.platform === "linux") return "systemd";
  if (process.platform === "darwin") return "launchd";
  throw usageError(`There is no systemd or launchd on ${process.platform}: have your own scheduler run "io --daemon" at login.`);
}

/** The unit or agent of one home, and its service manager. */
export function openService({ env, paths, kind }: ServiceDeps) {
  const home = env.HOME || homedir();
  const spec = specOf(env, paths);
  const text = kind === "systemd" ? systemdUnit(spec) : launchdAgent(spec);
  const folder =
    kind === "systemd"
      ? join(env.XDG_CONFIG_HOME || join(home, ".config"), "systemd", "user")
      : join(home, "Library", "LaunchAgents");
  const label = labelOf(spec.mark);
  const name = kind === "systemd" ? unitName(spec.mark) : `${label}.plist`;
  const path = join(folder, name);
  const wanted = join(folder, "default.target.wants", name);
  const uid = process.getuid?.() ?? 0;

  /** Calls the service manager; undefined if there is none or it is unreachable. */
  async function ask(...args: string[]): Promise<{ code: number | null; output: string } | undefined> {
    const program = findPrograms({ env, closed: [paths.home] }).find(kind === "systemd" ? "systemctl" : "launchctl").path;
    if (program === undefined) return undefined;
    const words = kind === "systemd" ? ["--user", "--no-ask-password", ...args] : args;
    const result = await exec(program, words, { env, deadlineMs: ASK_MS });
    const isCutOff =
      kind === "systemd" &&
      result.code !== 0 &&
      /bus|not been booted|No medium|Connection refused|XDG_RUNTIME_DIR/i.test(result.output);
    return isCutOff ? undefined : { code: result.code, output: result.output.trim() };
  }

  return {
    text,
    path,
    name,
    spec,
    /** Writes the file, starts the service now and at every login; returns why that failed, if it did. */
    async install({ start }: { start: boolean }): Promise<{ started: boolean; trouble: string | undefined }> {
      mkdirSync(folder, { recursive: true });
      writeFileAtomic(path, text, 0o644);
      if (kind === "launchd") {
        await ask("bootout", `gui/${uid}/${label}`);
        if (!start) return { started: false, trouble: undefined };
        const loaded = await ask("bootstrap", `gui/${uid}`, path);
        return loaded?.code === 0
          ? { started: true, trouble: undefined }
          : { started: false, trouble: loaded?.output ?? "launchctl was not found" };
      }
      const reloaded = await ask("daemon-reload");
      if (reloaded?.code === 0) {
        const enabled = await ask("enable", ...(start ? ["--now"] : []), name);
        return enabled?.code === 0
          ? { started: start, trouble: undefined }
          : { started: false, trouble: enabled?.output ?? "systemd went away" };
      }
      // Creates the link that `enable` would create, for the next login.
      mkdirSync(dirname(wanted), { recursive: true });
      rmSync(wanted, { force: true });
      symlinkSync(join("..", name), wanted);
      return {
        started: false,
        trouble: reloaded?.output ?? "systemd cannot be reached from here, because no user session of it runs",
      };
    },
    async remove(): Promise<boolean> {
      const wasThere = existsSync(path);
      if (kind === "launchd") await ask("bootout", `gui/${uid}/${label}`);
      else if (wasThere) await ask("disable", "--now", name);
      rmSync(wanted, { force: true });
      rmSync(path, { force: true });
      if (kind === "systemd" && wasThere) await ask("daemon-reload");
      return wasThere;
    },
    async status(): Promise<ServiceStatus> {
      const found = smallTextAt(path);
      const asked = kind === "systemd" ? await ask("is-active", name) : await ask("print", `gui/${uid}/${label}`);
      return { kind, path, installed: found !== undefined, current: found === text, active: asked ? asked.code === 0 : null };
    },
  };
}

/** Runs this installation on this home, with the PATH of the person's shell. */
function specOf(env: NodeJS.ProcessEnv, paths: Paths): ServiceSpec {
  if (/[\\/]_npx[\\/]/.test(packageRoot))
    throw usageError("IO runs from npx's cache, which may be emptied. Install it for good first: npm install -g io-orchestrator");
  const named = ["PATH", "COPILOT_CLI_PATH", "XDG_CONFIG_HOME"].flatMap((key) => (env[key] ? [[key, env[key]] as const] : []));
  return {
    mark: markOf(env, paths),
    program: process.execPath,
    // A home that has joined a cluster is a worker's.
    args: [realOf(join(packageRoot, "bin", "io.js")), ...(existsSync(paths.worker) ? ["worker", "join"] : DAEMON)],
    env: { IO_HOME: paths.home, ...Object.fromEntries(named) },
    envFile: join(paths.home, "service.env"),
    logFile: join(paths.logs, "service.out"),
  };
}

/** Empty for the default home; other homes have services named after their folders. */
function markOf(env: NodeJS.ProcessEnv, { home }: Paths): string {
  if (realOf(home) === realOf(pathsOf({ ...env, IO_HOME: undefined }).home)) return "";
  const name = basename(home)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, " ")
    .trim()
    .slice(0, 30)
    .replaceAll(" ", "-");
  const hash = createHash("sha256").update(realOf(home)).digest("hex").slice(0, 6);
  return [name, hash].filter(Boolean).join("-");
}

/** The variables that now select or unlock a model and that a service would not have. */
export function unseenVariables(env: NodeJS.ProcessEnv): string[] {
  const telling =
    /^(?:COPILOT_(?!CLI_PATH)\w+|GH_TOKEN|GITHUB_TOKEN|TELEGRAM_BOT_TOKEN|IO_(?:ENGINE|HOST|PORT|TOKEN)|\w+_API_KEY)$/;
  return Object.keys(env).filter((name) => telling.test(name) && env[name]);
}
