import { inboxOf } from "./connection.ts";
import {
  askSubject,
  bucketOf,
  cancelSubject,
  consumerOf,
  deltaSubject,
  LEASES,
  poolsOf,
  presenceSubject,
  STEPS,
  toldSubject,
} from "./names.ts";

export interface Rights {
  publish: string[];
  subscribe: string[];
  /** Whether it may answer what it was asked, once. */
  allowResponses: true;
}

/**
 * All that a worker may do: say that it is there, take jobs of its pools, hold their leases, tell of them, ask about them,
 * and hear what is meant for it. It makes no job and no stream, and takes none away.
 */
export function workerRights(name: string, labels: readonly string[]): Rights {
  return {
    publish: [presenceSubject(name), ...poolsOf(name, labels).flatMap(ofPool)],
    subscribe: [`${inboxOf(name)}.>`, cancelSubject(name)],
    allowResponses: true,
  };
}

function ofPool(pool: string): string[] {
  const all = { pool, id: "*" };
  const objects = `OBJ_${bucketOf(pool)}`;
  return [
    `$JS.API.CONSUMER.INFO.${STEPS}.${consumerOf(pool)}`,
    `$JS.API.CONSUMER.MSG.NEXT.${STEPS}.${consumerOf(pool)}`,
    `$JS.ACK.${STEPS}.${consumerOf(pool)}.>`,
    `$JS.API.DIRECT.GET.KV_${LEASES}.$KV.${LEASES}.${pool}.>`,
    `$KV.${LEASES}.${pool}.>`,
    toldSubject(all),
    deltaSubject(all),
    askSubject(all),
    `$O.${bucketOf(pool)}.>`,
    `$JS.API.STREAM.INFO.${objects}`,
    `$JS.API.STREAM.PURGE.${objects}`,
    `$JS.API.STREAM.MSG.GET.${objects}`,
    `$JS.API.DIRECT.GET.${objects}.>`,
    `$JS.API.CONSUMER.CREATE.${objects}`,
    `$JS.API.CONSUMER.CREATE.${objects}.>`,
    `$JS.API.CONSUMER.DELETE.${objects}.>`,
    `$JS.FC.${objects}.>`,
  ];
}
