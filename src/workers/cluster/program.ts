import { delimiter, isAbsolute } from "node:path";
import { UserError } from "../../lib/errors.ts";
import { exec } from "../../process/exec.ts";
import { findPrograms } from "../../process/programs.ts";

/** A `nats-server` program that can be started. */
export interface ServerProgram {
  path: string;
  version: string;
}

/** Where packages install it, though PATH may not contain the folder. */
const ALSO = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/lib/nats-server", "/opt/homebrew/bin"];

const INSTALL =
  'Install it ("sudo apt-get install nats-server" on Debian and Ubuntu, "brew install nats-server" on macOS), or name it in config.json: {"cluster": {"server": "/path/to/nats-server"}}. A server that runs elsewhere is used with "cluster": {"url": "tls://…"}.';

/** Searches each time, so that a server installed just now is found without a restart. */
export async function findServer(env: NodeJS.ProcessEnv, home: string, configured?: string): Promise<ServerProgram> {
  const path = configured ?? lookUp(env, home);
  if (!isAbsolute(path)) throw new UserError(`cluster.server: ${path} is no whole path.`);
  const { code, stdout, output } = await exec(path, ["--version"], { cwd: "/", env: {}, deadlineMs: 10_000 });
  const version = /\bv?(\d{1,4}\.\d{1,4}\.\d{1,4})/.exec(stdout)?.[1];
  if (code !== 0 || version === undefined || !/nats/i.test(stdout))
    throw new UserError(`${path} is no NATS server that can be started: ${output.trim().slice(0, 200)}. ${INSTALL}`);
  return { path, version };
}

function lookUp(env: NodeJS.ProcessEnv, home: string): string {
  const PATH = [env.PATH ?? "", ...ALSO].filter(Boolean).join(delimiter);
  const found = findPrograms({ env: { ...env, PATH }, closed: [home] }).find("nats-server");
  if (found.path === undefined)
    throw new UserError(`There is no nats-server here: ${found.why}. ${INSTALL}`, { trouble: "unavailable" });
  return found.path;
}
