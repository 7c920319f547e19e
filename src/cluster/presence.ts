import type { NatsConnection } from "@nats-io/transport-node";
import { presenceSubject } from "../dispatch/nats/names.ts";
import type { Log } from "../lib/log.ts";
import { Presence, type PresenceAnswer } from "../protocol/workers.ts";
import { readJson } from "../store/read-json.ts";
import type { WorkerRows } from "../store/workers.ts";
import { protocolRefusal } from "./pairing.ts";

/** How often a worker says that it is there. */
export const BEAT_MS = 2_000;

export interface HearWorkersDeps {
  connection: NatsConnection;
  workers: WorkerRows;
  log: Log;
}

/** Hears what workers say of themselves, and tells each what is wanted of it. */
export function hearWorkers({ connection, workers, log }: HearWorkersDeps): void {
  const begin = presenceSubject("").length;
  connection.subscribe(presenceSubject("*"), {
    callback: (error, message) => {
      if (error) return log.warn("workers are not heard", { error });
      const name = message.subject.slice(begin);
      const presence = readJson(Presence, message.string());
      message.respond(JSON.stringify(answerTo(name, presence)));
    },
  });

  function answerTo(name: string, presence: Presence | undefined): PresenceAnswer {
    const row = workers.find(name);
    if (!row)
      return { state: "refused", reason: `There is no worker called "${name}" any more. Join again with a new invitation.` };
    if (!presence)
      return { state: "refused", reason: "What the worker says of itself is not understood. Update it, or the daemon." };
    const skew = protocolRefusal(presence.protocol, presence.version);
    if (skew !== undefined) {
      log.warn("a worker of another version was refused", { name, version: presence.version });
      return { state: "refused", reason: skew };
    }
    workers.heard(name, presence);
    return { state: row.draining ? "drain" : "welcome" };
  }
}
