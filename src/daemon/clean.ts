import { pathsOf } from "../lib/paths.ts";
import { createCleaner } from "../swarm/run/clean.ts";
import { openGitAlone } from "./git-alone.ts";
import { openRunRecords } from "./run-records.ts";

/** What removes the leftovers of runs. Needs neither an engine nor a config that is in order. */
export function openCleaner(env: NodeJS.ProcessEnv) {
  const paths = pathsOf(env);
  const { records, close } = openRunRecords(env);
  const git = openGitAlone(env);
  return { ...createCleaner({ records, git, runsFolder: paths.runs, sessionsFolder: paths.sessions }), close };
}
