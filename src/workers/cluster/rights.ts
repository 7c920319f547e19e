import { inboxOf } from "../jobs/nats/connection.ts";
import { workerRights } from "../jobs/nats/rights.ts";

/** Where a worker asks for admission, by the public key of its invitation. */
export const pairingSubject = (invitation: string): string => `io.pair.${invitation}`;

/** A user of the server, and the subjects that it may publish and read. */
export interface ServerUser {
  nkey: string;
  permissions?: { publish: { allow: string[] }; subscribe: { allow: string[] } };
}

/** The daemon may publish and read everything. */
export const daemonUser = (nkey: string): ServerUser => ({ nkey });

/** A stranger with an invitation can only ask for admission. */
export function pairingUser(nkey: string): ServerUser {
  return { nkey, permissions: { publish: { allow: [pairingSubject(nkey)] }, subscribe: { allow: [`${inboxOf(nkey)}.>`] } } };
}

export interface WorkerUser {
  publicKey: string;
  name: string;
}

/** A worker can only publish to its own subjects, and reads no other worker's. */
export function workerUser({ publicKey, name }: WorkerUser): ServerUser {
  const { publish, subscribe } = workerRights(name);
  return { nkey: publicKey, permissions: { publish: { allow: publish }, subscribe: { allow: subscribe } } };
}
