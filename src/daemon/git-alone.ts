import type { Git } from "../git/command.ts";
import { packageRoot, pathsOf } from "../lib/paths.ts";
import { createRedactor } from "../lib/redact.ts";
import { findPrograms } from "../process/programs.ts";
import { createSandbox } from "../process/sandbox.ts";
import { createPathGuard } from "../tools/guard.ts";
import { openGit } from "./core.ts";

/** The one git, for commands that need neither an engine nor a config that is in order. */
export function openGitAlone(env: NodeJS.ProcessEnv): Git {
  const paths = pathsOf(env);
  const programs = findPrograms({ env, closed: [paths.home] });
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => false });
  const { wrap } = createSandbox({ home: paths.home, guard, env, programs });
  return openGit({ env, home: paths.home, programs, wrap, redactor: createRedactor() });
}
