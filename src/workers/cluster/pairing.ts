import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { Log } from "../../lib/log.ts";
import { explainIssues } from "../../lib/validation.ts";
import { readJson } from "../../store/read-json.ts";
import type { WorkerRows } from "../../store/workers.ts";
import { isUserKey } from "../jobs/nats/nkey.ts";
import { PROTOCOL } from "../jobs/port.ts";
import type { Invitations } from "./invitations.ts";
import { type PairAnswer, PairRequest, Proven } from "./pairing-messages.ts";
import { pairingSubject } from "./rights.ts";

export interface PairingDeps {
  connection: NatsConnection;
  invitations: Invitations;
  workers: WorkerRows;
  answer: () => PairAnswer;
  log: Log;
}

/** Admits each worker that proves to have an open invitation's code, once. */
export function receiveWorkers({ connection, invitations, workers, answer, log }: PairingDeps): void {
  const begin = pairingSubject("").length;
  connection.subscribe(pairingSubject("*"), {
    callback: (error, message) => {
      if (error) return log.warn("pairing is not possible", { error });
      receive(message).catch((failure: unknown) => log.error("a pairing failed", { error: failure }));
    },
  });

  async function receive(message: Msg): Promise<void> {
    const invitation = message.subject.slice(begin);
    const proven = readJson(Proven, message.string());
    const { text = "", proof = "" } = proven ?? {};
    if (!invitations.take(invitation, text, proof)) {
      log.warn("a worker with a wrong code was refused");
      message.respond(JSON.stringify({ refused: true }));
      await connection.flush();
      return invitations.settle(invitation);
    }
    const why = admit(text);
    const said = why === undefined ? JSON.stringify(answer()) : JSON.stringify({ declined: why });
    message.respond(JSON.stringify({ text: said, proof: invitations.prove(invitation, said) }));
    if (why !== undefined) return invitations.release(invitation);
    // The answer must be sent before the server learns that the invitation is over and closes its connection.
    await connection.flush();
    invitations.close(invitation);
  }

  /** Admits a worker that has the code; returns the reason if that is impossible. */
  function admit(text: string): string | undefined {
    const request = PairRequest.safeParse(parsed(text));
    if (!request.success) return `What the worker said of itself is not in order: ${explainIssues(request.error)}`;
    const { name, publicKey, protocol, version } = request.data;
    const skew = protocolRefusal(protocol, version);
    if (skew !== undefined) return skew;
    if (!isUserKey(publicKey)) return "The worker's key is none.";
    if (workers.find(name))
      return `A worker called "${name}" is there already. Choose another with --name, or take that one out with "io worker revoke ${name}".`;
    workers.add(request.data);
    log.info("a worker was let in", { name, version });
    return undefined;
  }
}

/** Why a worker of this version cannot work here, if so. */
export function protocolRefusal(protocol: number, version: string): string | undefined {
  if (protocol === PROTOCOL) return undefined;
  const older = protocol < PROTOCOL ? "the worker" : "the daemon";
  return `The worker (IO ${version}) speaks version ${protocol} of the protocol between hosts, this daemon version ${PROTOCOL}. Update ${older}, then start the worker again.`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema reports what is wrong.
    return undefined;
  }
}
