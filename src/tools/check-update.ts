import compareVersions from "semver/functions/compare.js";
import isVersion from "semver/functions/valid.js";
import { z } from "zod";
import { messageOf } from "../lib/errors.ts";
import type { Redactor } from "../lib/redact.ts";
import { withoutEnd } from "../lib/trim.ts";
import { cleanEnvironment } from "../process/environment.ts";
import { type ExecOptions, type ExecResult, exec } from "../process/exec.ts";
import { unwrapped, type Wrap } from "../process/sandbox.ts";
import { type Tool, ToolError, tool } from "./tool.ts";

export interface CheckUpdateDeps {
  version: string;
  /** The registry the user named; without one, npm's own setting decides. */
  registry: () => string | undefined;
  redactor: Redactor;
  /** Npm's settings are files that a model could have written: it asks as hidden as a model's own commands. */
  wrap?: Wrap;
  npm?: string;
  env?: NodeJS.ProcessEnv;
}

const PACKAGE = "io-orchestrator";
const Version = z
  .string()
  .max(100)
  .regex(/^\d\S*$/)
  .refine((text) => isVersion(text) !== null);

export { compareVersions };

/** Tells whether a newer IO is published, and installs it when asked to. */
export function checkUpdate({
  version,
  registry,
  redactor,
  wrap = unwrapped,
  npm = "npm",
  env = process.env,
}: CheckUpdateDeps): Tool {
  const own = { ...cleanEnvironment(env, redactor), ...npmLogin(env) };
  const ask: RunNpm = async (args, options) => {
    const [program, ...rest] = await wrap([npm, ...args], options.cwd ?? ".");
    return exec(program, rest, { ...options, env: own });
  };
  return tool({
    name: "check_update",
    description: "See whether a newer version of IO is published. Set apply only when the user asked to install it.",
    schema: z.object({ apply: z.boolean().optional() }),
    kind: ({ apply }) => (apply ? "effect" : "read"),
    deadlineMs: ({ apply }) => (apply ? 640_000 : 40_000),
    async run({ apply }, { signal, cwd }) {
      const base = registry();
      const latest = base === undefined ? await askNpm(ask, cwd, signal) : await askRegistry(base, signal);
      if (compareVersions(latest, version) <= 0) return `IO ${version} is up to date (published: ${latest}).`;
      if (!apply) return `IO ${latest} is published; this is ${version}. Ask the user before it is installed with apply.`;
      const from = base === undefined ? [] : [`--registry=${base}`];
      // Into IO's own folder, which no hidden program may write; so nothing that settings or packages name is run with it.
      const result = await exec(npm, ["install", "--global", "--ignore-scripts", ...from, `${PACKAGE}@${latest}`], {
        env: own,
        cwd,
        signal,
        deadlineMs: 600_000,
        maxOutput: 4_000,
      });
      if (result.ending !== "exited" || result.code !== 0) {
        throw new ToolError(
          `IO ${latest} could not be installed (npm ended with ${result.code ?? result.ending}): ${result.output.trim().slice(-1_500)}`,
        );
      }
      return `IO ${latest} is installed. It takes over at the next "io restart".`;
    },
  });
}

type RunNpm = (args: string[], options: ExecOptions) => Promise<ExecResult>;

/** What a private registry may ask npm for; no other secret goes along. */
function npmLogin(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(["NPM_TOKEN", "NODE_AUTH_TOKEN"].filter((name) => env[name]).map((name) => [name, env[name]]));
}

async function askRegistry(base: string, signal: AbortSignal): Promise<string> {
  const url = `${withoutEnd(base, "/")}/${PACKAGE}/latest`;
  try {
    const { request } = (await import("undici")).default;
    const { statusCode, body } = await request(url, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(15_000)]),
      headers: { accept: "application/json" },
    });
    let text = "";
    for await (const chunk of body) {
      text += String(chunk);
      if (text.length > 2_000_000) throw new Error("its answer is too long");
    }
    if (statusCode === 404) throw new ToolError(`${PACKAGE} is not published at ${base}, so there is nothing to compare with.`);
    if (statusCode !== 200) throw new Error(`it answered ${statusCode}`);
    return z.object({ version: Version }).parse(JSON.parse(text)).version;
  } catch (error) {
    if (error instanceof ToolError) throw error;
    throw unreachable(
      base,
      error instanceof z.ZodError || error instanceof SyntaxError ? "its answer names no version" : messageOf(error),
    );
  }
}

async function askNpm(runNpm: RunNpm, cwd: string, signal: AbortSignal): Promise<string> {
  const result = await runNpm(["view", PACKAGE, "version", "--json"], { cwd, signal, deadlineMs: 30_000, maxOutput: 4_000 });
  if (result.ending === "not-started") throw unreachable("npm's registry", "npm is not installed");
  if (/E404/.test(result.output))
    throw new ToolError(`${PACKAGE} is not published at npm's registry, so there is nothing to compare with.`);
  if (result.ending !== "exited" || result.code !== 0) {
    throw unreachable(
      "npm's registry",
      result.stderr.trim().split("\n")[0]?.slice(0, 300) || `npm ended with ${result.code ?? result.ending}`,
    );
  }
  const found = Version.safeParse(result.stdout.trim().replace(/^"(.*)"$/, "$1"));
  if (!found.success) throw unreachable("npm's registry", "its answer names no version");
  return found.data;
}

function unreachable(where: string, why: string): ToolError {
  return new ToolError(
    `Whether there is a newer IO cannot be told: ${where} could not be asked (${why}). The user can name another with "updateRegistry" in config.json.`,
  );
}
