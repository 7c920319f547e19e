import { inboxOf } from "./connection.ts";
import { fromWorker, presenceSubject, wakeSubject } from "./names.ts";

export interface Rights {
  publish: string[];
  subscribe: string[];
}

/**
 * A worker's permissions at the server: talk to the daemon under its own name, and read the daemon's answers. It has no access to
 * JetStream, because the server would answer a direct read to any subject that the worker names, with bytes of its choice.
 */
export function workerRights(name: string): Rights {
  return { publish: [presenceSubject(name), fromWorker(name)], subscribe: [`${inboxOf(name)}.>`, wakeSubject(name)] };
}
