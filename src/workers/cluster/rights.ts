import { inboxOf } from "../jobs/nats/connection.ts";
import { workerRights } from "../jobs/nats/rights.ts";

/** Where a worker asks to be let in, by the public key of its invitation. */
export const pairingSubject = (invitation: string): string => `io.pair.${invitation}`;

/** What one user of the server may say and hear. */
export interface ServerUser {
  nkey: string;
  permissions?: { publish: { allow: string[] }; subscribe: { allow: string[] } };
}

/** The daemon owns everything that goes through the server. */
export const daemonUser = (nkey: string): ServerUser => ({ nkey });

/** A stranger with an invitation can ask to be let in, and nothing else. */
export function pairingUser(nkey: string): ServerUser {
  return { nkey, permissions: { publish: { allow: [pairingSubject(nkey)] }, subscribe: { allow: [`${inboxOf(nkey)}.>`] } } };
}

export interface WorkerUser {
  publicKey: string;
  name: string;
}

/** A worker does jobs and says that it is there; what others say it does not hear. */
export function workerUser({ publicKey, name }: WorkerUser): ServerUser {
  const { publish, subscribe } = workerRights(name);
  return { nkey: publicKey, permissions: { publish: { allow: publish }, subscribe: { allow: subscribe } } };
}
