import { join } from "node:path";
import { onTestFinished } from "vitest";
import { connectTo } from "../../../src/workers/jobs/nats/connection.ts";
import { createDesk } from "../../../src/workers/jobs/nats/desk.ts";
import { createNatsDispatcher } from "../../../src/workers/jobs/nats/dispatcher.ts";
import { createLink } from "../../../src/workers/jobs/nats/link.ts";
import { openWorker } from "../../../src/workers/jobs/nats/worker.ts";
import { LEASE_MS, testWorker } from "../../support/dispatch/work.ts";
import { quietLog } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { startNats, workerInfo } from "../../support/nats.ts";
import { dispatcherSuite } from "./suite.ts";

dispatcherSuite({
  name: "nats",
  async prepare() {
    const nats = await startNats([{ name: "w1" }]);
    const folder = join(temporaryFolder(), "blobs");
    let isThere = false;
    return async (store) => {
      const access = nats.accessTo("daemon");
      const connection = await connectTo(access);
      const workers = () => [workerInfo("w1")];
      const dispatcher = createNatsDispatcher({ store, workers, folder, log: quietLog, leaseMs: LEASE_MS });
      dispatcher.attend(connection, createDesk({ seed: access.nkeySeed, keyOf: nats.publicKey }));
      // The worker outlives the daemon.
      if (!isThere) {
        isThere = true;
        const own = await connectTo(nats.accessTo("w1"));
        const link = createLink({ connection: own, access: nats.accessTo("w1"), daemon: nats.publicKey("daemon") });
        const host = openWorker({ link, capacity: 1, worker: testWorker, log: quietLog });
        onTestFinished(() => host.close().then(() => own.close()));
      }
      return { ...dispatcher, close: () => dispatcher.close().then(() => connection.close()) };
    };
  },
});
