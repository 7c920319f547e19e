import compareVersions from "semver/functions/compare.js";
import { z } from "zod";
import { PACKAGE } from "../lib/version.ts";
import { NPM_REGISTRY, newestVersion } from "./npm-registry.ts";
import { type Tool, ToolError, tool } from "./tool.ts";

export interface CheckUpdateDeps {
  version: string;
  /** The registry named in config.json; undefined for npm's default. */
  registry: () => string | undefined;
  /** May name a proxy. */
  env: NodeJS.ProcessEnv;
}

export { compareVersions };

const BY_A_PERSON = 'Only a person installs it: tell the user to run "io update" in a terminal.';

/** Reports whether a newer IO is published. Installs nothing, whatever it is asked. */
export function checkUpdate({ version, registry, env }: CheckUpdateDeps): Tool {
  return tool({
    name: "check_update",
    description: 'See whether a newer version of IO is published. To install it is for the user: "io update".',
    schema: z.object({ apply: z.boolean().optional().describe("tells how it is installed") }),
    kind: "read",
    deadlineMs: 40_000,
    async run({ apply }, { signal }) {
      if (apply) return `This is IO ${version}. ${BY_A_PERSON}`;
      const newest = await newestVersion({ registry: registry() ?? NPM_REGISTRY, package: PACKAGE, signal, env });
      if (newest.version === undefined) throw new ToolError(newest.why);
      if (compareVersions(newest.version, version) <= 0) return `IO ${version} is up to date (published: ${newest.version}).`;
      return `IO ${newest.version} is published; this is ${version}. ${BY_A_PERSON}`;
    },
  });
}
