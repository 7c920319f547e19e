import { inboxOf } from "./connection.ts";
import { fromWorker, presenceSubject, wakeSubject } from "./names.ts";

export interface Rights {
  publish: string[];
  subscribe: string[];
}

/**
 * All that a worker may do at the server: speak to the daemon under its own name, and hear the daemon's answers. It has no
 * right to JetStream: the server would answer a direct read to whatever subject the worker names, with bytes of its choice.
 */
export function workerRights(name: string): Rights {
  return { publish: [presenceSubject(name), fromWorker(name)], subscribe: [`${inboxOf(name)}.>`, wakeSubject(name)] };
}
