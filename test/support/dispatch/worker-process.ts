import { messageOf } from "../../../src/lib/errors.ts";
import { createLog } from "../../../src/lib/log.ts";
import { createRedactor } from "../../../src/lib/redact.ts";
import { runAsWorker } from "../../../src/workers/cluster/run-worker.ts";
import type { WorkerFile } from "../../../src/workers/cluster/worker-file.ts";
import { testWorker } from "./work.ts";

/** A worker in its own process, so that tests can kill or freeze it. Prints "ready" once it accepts jobs. */
const file = JSON.parse(process.argv[2]!) as WorkerFile;
const log = createLog({ redactor: createRedactor(), echo: (line) => console.error(line) });
const stopping = new AbortController();
process.on("SIGTERM", () => stopping.abort());
const about = { version: "1.0.0", engine: "none", wall: "none" };
await runAsWorker({
  ...file,
  prepare: async () => ({ worker: testWorker, about }),
  log,
  note: (text) => console.log(text.includes(" works for ") ? "ready" : text),
  signal: stopping.signal,
}).catch((error: unknown) => console.log(`over: ${messageOf(error)}`));
