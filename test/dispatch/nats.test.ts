import { onTestFinished } from "vitest";
import { connectTo } from "../../src/dispatch/nats/connection.ts";
import { createNatsDispatcher } from "../../src/dispatch/nats/dispatcher.ts";
import { openWorker } from "../../src/dispatch/nats/worker.ts";
import { LEASE_MS, testWorker } from "../support/dispatch/work.ts";
import { quietLog } from "../support/engine.ts";
import { startNats } from "../support/nats.ts";
import { dispatcherSuite } from "./suite.ts";

dispatcherSuite({
  name: "nats",
  async prepare() {
    const nats = await startNats([{ name: "w1" }]);
    let isThere = false;
    return async (store) => {
      const connection = await connectTo(nats.accessTo("daemon"));
      const dispatcher = createNatsDispatcher({ store, workers: () => [], log: quietLog, leaseMs: LEASE_MS });
      await dispatcher.attend(connection);
      // The worker outlives the daemon.
      if (!isThere) {
        isThere = true;
        const own = await connectTo(nats.accessTo("w1"));
        const deps = { connection: own, name: "w1", labels: [], capacity: 1, worker: testWorker, log: quietLog };
        const host = await openWorker(deps);
        onTestFinished(() => host.close().then(() => own.close()));
      }
      return { ...dispatcher, close: () => dispatcher.close().then(() => connection.close()) };
    };
  },
});
