import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { exec } from "../../src/process/exec.ts";
import { ensurePython, PYTHON } from "./program.ts";

/** Third-party clients of IO are kept in the user's cache folder, so that each version is downloaded once. */
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "io-tests");

const PYPI = { llm: "0.36", "aider-chat": "0.86.2", "open-webui": "0.12.4" } as const;
const NODE = "22.23.3";
const NPM = [`node@${NODE}`, "acpx@0.19.1", "@modelcontextprotocol/inspector@2.12.0"];

/** Installs a package from PyPI into its own virtual environment. Returns the folder of its programs. */
export async function ensureFromPypi(name: keyof typeof PYPI, deadlineMs: number): Promise<string> {
  const folder = join(CACHE, `${name}-${PYPI[name]}`);
  if (!existsSync(join(folder, "installed"))) {
    await ensurePython("ensurepip", "python3-venv");
    const pip = `${folder}/bin/pip install -q --disable-pip-version-check ${name}==${PYPI[name]}`;
    await install(folder, `${PYTHON} -m venv ${folder} && ${pip}`, deadlineMs);
  }
  return join(folder, "bin");
}

/** Installs the ACP and MCP clients from npm that need a newer Node than IO does, and that Node. */
export async function ensureNodeClients(): Promise<{ node: string; acpx: string; inspector: string }> {
  const folder = join(CACHE, `node-clients-${NODE}-2`);
  // Only Node's own package needs its install script, which links the binary for this machine.
  const npm = ["npm install --no-audit --no-fund --prefix", folder, ...NPM].join(" ");
  if (!existsSync(join(folder, "installed"))) await install(folder, npm, 600_000);
  const inside = (...path: string[]) => join(folder, "node_modules", ...path);
  return {
    node: inside("node", "bin", "node"),
    acpx: inside("acpx", "dist", "cli.js"),
    inspector: inside("@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"),
  };
}

/** Runs one installation at a time across all processes, and retries once in case the registry was slow. */
async function install(folder: string, script: string, deadlineMs: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const once = `test -e ${folder}/installed || { ${script} && touch ${folder}/installed; }`;
  const run = () => exec("flock", [`${folder}.lock`, "/bin/sh", "-c", `${once} || { ${once}; }`], { deadlineMs });
  const { code, output } = await run();
  if (code !== 0) throw new Error(`${script} failed:\n${output}`);
}
