import type { Git } from "../git/command.ts";
import { pathsOf } from "../home/paths.ts";
import { packageRoot } from "../lib/package-root.ts";
import { createRedactor } from "../lib/redact.ts";
import { findPrograms } from "../process/programs.ts";
import { createSandbox } from "../process/sandbox.ts";
import type { Check } from "../project/commands.ts";
import { findChecksWith } from "../swarm/checks/planned-checks.ts";
import { createPathGuard } from "../tools/guard.ts";
import { openGit } from "./core.ts";

/** The only git, for commands that need neither an engine nor a valid config. */
export function openGitAlone(env: NodeJS.ProcessEnv): Git {
  const paths = pathsOf(env);
  const programs = findPrograms({ env, closed: [paths.home] });
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => false });
  const { wrap } = createSandbox({ home: paths.home, guard, env, programs });
  return openGit({ env, home: paths.home, programs, wrap, redactor: createRedactor() });
}

/** The checks that a project's own files name. */
export function findChecksAlone(env: NodeJS.ProcessEnv, projectPath: string): Promise<Check[]> {
  return findChecksWith(openGitAlone(env))(projectPath);
}
