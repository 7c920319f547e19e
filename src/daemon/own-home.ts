import { ensureHome, pathsOf } from "../home/paths.ts";
import { createLog } from "../lib/log.ts";
import { createRedactor } from "../lib/redact.ts";
import { createEventLog } from "../store/events.ts";
import { createHub } from "../store/hub.ts";
import { takeLock } from "../store/lock.ts";
import { openStore } from "../store/open.ts";
import { type SnapshotOptions, takeSnapshot } from "../store/snapshot.ts";
import { createSquadStore } from "../store/squads.ts";
import { chosenBy } from "../swarm/checks/chosen-checks.ts";
import { createCleaner } from "../swarm/run/clean.ts";
import { createRunRecords } from "../swarm/run/records.ts";
import { createUndo, type Undo } from "../undo/undo.ts";
import { createClosers } from "./closers.ts";
import { openGitAlone } from "./git-alone.ts";

/**
 * Takes a data folder that no daemon serves, and keeps every daemon out until `close`. Undefined if another process has it. Needs
 * neither an engine nor a valid config.
 */
export function takeHome(env: NodeJS.ProcessEnv) {
  const paths = pathsOf(env);
  ensureHome(paths);
  const lock = takeLock(paths.lock);
  if (!lock) return undefined;
  const closers = createClosers();
  closers.add(lock.release);
  // Nobody else waits for this process.
  const open = () => {
    const store = openStore(paths.database, { lockWaitMs: 5_000 });
    closers.add(store.close);
    return store;
  };
  const log = createLog({ folder: paths.logs, redactor: createRedactor() });
  const records = () => {
    const store = open();
    const hub = createHub({ events: createEventLog(store), log });
    closers.add(hub.close);
    return createRunRecords({ store, emit: hub.emit, log });
  };
  return {
    /** The runs, none of which is in progress. */
    records,
    /** The checks that a person chose for a project. */
    chosenChecks(projectPath: string) {
      return chosenBy(createSquadStore(open()).findByPath(projectPath));
    },
    cleaner: () =>
      createCleaner({
        ...{ records: records(), git: openGitAlone(env) },
        ...{ runsFolder: paths.runs, sessionsFolder: paths.sessions },
      }),
    /** Removes the undo records of messages and tasks. */
    cleanChanges: (options: Parameters<Undo["clean"]>[0]) =>
      createUndo({ store: open(), git: openGitAlone(env), folder: paths.undo, home: paths.home, log }).clean(options),
    /** Copies the database, whatever version wrote it. */
    snapshot: (target: string, options: SnapshotOptions) => takeSnapshot(paths.database, target, options),
    close: closers.close,
  };
}
export type TakenHome = NonNullable<ReturnType<typeof takeHome>>;
