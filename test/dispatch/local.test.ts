import { createLocalDispatcher } from "../../src/dispatch/local.ts";
import { testWorker } from "../support/dispatch/work.ts";
import { quietLog } from "../support/engine.ts";
import { dispatcherSuite } from "./suite.ts";

dispatcherSuite({
  name: "local",
  prepare: async () => async (store) => createLocalDispatcher({ store, worker: testWorker, log: quietLog, capacity: 1 }),
});
