import { createLog } from "../lib/log.ts";
import { ensureHome, pathsOf } from "../lib/paths.ts";
import { createRedactor } from "../lib/redact.ts";
import { createEventLog } from "../store/events.ts";
import { createHub } from "../store/hub.ts";
import { openStore } from "../store/open.ts";
import { createRunRecords } from "../swarm/run/records.ts";

/** The runs in the store, for commands that need neither an engine nor a config that is in order. */
export function openRunRecords(env: NodeJS.ProcessEnv) {
  const paths = pathsOf(env);
  ensureHome(paths);
  const log = createLog({ folder: paths.logs, redactor: createRedactor() });
  const store = openStore(paths.database);
  const hub = createHub({ events: createEventLog(store), log });
  return {
    records: createRunRecords({ store, emit: hub.emit, log }),
    close(): void {
      hub.close();
      store.close();
    },
  };
}
