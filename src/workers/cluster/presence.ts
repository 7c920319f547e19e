import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { Log } from "../../lib/log.ts";
import { Presence, type PresenceAnswer } from "../../protocol/workers.ts";
import { readJson } from "../../store/read-json.ts";
import type { WorkerRows } from "../../store/workers.ts";
import { inboxOf } from "../jobs/nats/connection.ts";
import type { Desk } from "../jobs/nats/desk.ts";
import { QuestionHead } from "../jobs/nats/messages.ts";
import { presenceSubject } from "../jobs/nats/names.ts";
import { claimedHead, isSealed } from "../jobs/nats/sealed.ts";
import { protocolRefusal } from "./pairing.ts";

/** How often a worker reports that it is alive. */
export const BEAT_MS = 2_000;

export interface HearWorkersDeps {
  connection: NatsConnection;
  desk: Desk;
  workers: WorkerRows;
  log: Log;
}

/** Receives the reports of workers and answers each with what it should do. */
export function hearWorkers({ connection, desk, workers, log }: HearWorkersDeps): void {
  const begin = presenceSubject("").length;
  connection.subscribe(presenceSubject("*"), {
    callback: (error, message) => {
      if (error) return log.warn("workers are not heard", { error });
      const name = message.subject.slice(begin);
      if (!isSealed(message.data)) return refuseOlder(name, message);
      const head = QuestionHead.safeParse(claimedHead(message.data)).data;
      const { version = "?" } = Presence.partial().safeParse(head?.data).data ?? {};
      const skew = head && protocolRefusal(head.protocol, version);
      const unknown = workers.find(name)
        ? undefined
        : `There is no worker called "${name}" any more. Join again with a new invitation.`;
      const reason = unknown ?? skew;
      if (reason !== undefined) return desk.refuse(name, message, () => ({ state: "refused", reason }) satisfies PresenceAnswer);
      const heard = desk.open(name, message);
      if (heard) heard.answer(answerTo(name, Presence.safeParse(heard.data).data));
    },
  });

  /** Older workers do not sign. They get an answer in their format, and nothing they say counts. */
  function refuseOlder(name: string, message: Msg): void {
    const presence = readJson(Presence, message.string());
    const reason = presence && protocolRefusal(presence.protocol, presence.version);
    log.warn("a worker of another version was refused", { name, version: presence?.version });
    if (reason === undefined || !message.reply?.startsWith(`${inboxOf(name)}.`)) return;
    message.respond(JSON.stringify({ state: "refused", reason } satisfies PresenceAnswer));
  }

  function answerTo(name: string, presence: Presence | undefined): PresenceAnswer {
    if (!presence)
      return { state: "refused", reason: "What the worker says of itself is not understood. Update it, or the daemon." };
    workers.heard(name, presence);
    return { state: workers.find(name)?.draining ? "drain" : "welcome" };
  }
}
