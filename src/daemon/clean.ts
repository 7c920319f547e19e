import { packageRoot, pathsOf } from "../lib/paths.ts";
import { createRedactor } from "../lib/redact.ts";
import { findPrograms } from "../process/programs.ts";
import { createSandbox } from "../process/sandbox.ts";
import { createCleaner } from "../swarm/run/clean.ts";
import { createPathGuard } from "../tools/guard.ts";
import { openGit } from "./core.ts";
import { openRunRecords } from "./run-records.ts";

/** What removes the leftovers of runs. Needs neither an engine nor a config that is in order. */
export function openCleaner(env: NodeJS.ProcessEnv) {
  const paths = pathsOf(env);
  const { records, close } = openRunRecords(env);
  const programs = findPrograms({ env, closed: [paths.home] });
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => false });
  const { wrap } = createSandbox({ home: paths.home, guard, env, programs });
  const git = openGit({ env, home: paths.home, programs, wrap, redactor: createRedactor() });
  return { ...createCleaner({ records, git, runsFolder: paths.runs, sessionsFolder: paths.sessions }), close };
}
