import {
  AckPolicy,
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { Objm } from "@nats-io/obj";
import { type NatsConnection, nanos } from "@nats-io/transport-node";
import { bucketOf, consumerFilter, consumerOf, LEASES, STEPS, TOLD, TOLD_CONSUMER } from "./names.ts";

/** How long bundles and large results are kept if nobody takes them away. */
const BLOB_DAYS = 7;
const DAY_MS = 86_400_000;
/** For how long the same publish is known again. */
const DUPLICATES_MS = 120_000;

export interface Cluster {
  nc: NatsConnection;
  js: JetStreamClient;
  jsm: JetStreamManager;
  leases: KV;
}

/** Binds to what is there; nothing is made by this, which a worker has no right to. */
export async function bindCluster(nc: NatsConnection, timeoutMs: number): Promise<Cluster> {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: timeoutMs });
  const js = jsm.jetstream();
  return { nc, js, jsm, leases: await new Kvm(js).open(LEASES, { bindOnly: true, allow_direct: true }) };
}

export interface EnsureDeps {
  cluster: Cluster;
  leaseMs: number;
}

/** Makes the streams and buckets where they are missing: at first, and when the server has lost its data. */
export async function ensureStreams({ js, jsm }: Cluster): Promise<void> {
  const common = { storage: StorageType.File, duplicate_window: nanos(DUPLICATES_MS) };
  await ensureStream(jsm, {
    ...common,
    name: STEPS,
    subjects: ["io.*.step.>"],
    retention: RetentionPolicy.Workqueue,
    // The same job cannot wait twice.
    max_msgs_per_subject: 1,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
  });
  await ensureStream(jsm, { ...common, name: TOLD, subjects: ["io.*.told.>"], retention: RetentionPolicy.Workqueue });
  await jsm.consumers.add(TOLD, { durable_name: TOLD_CONSUMER, ack_policy: AckPolicy.Explicit, ack_wait: nanos(30_000) });
  await new Kvm(js).create(LEASES, { history: 1, allow_direct: true });
}

/** The consumer and the bucket of a pool. */
export async function ensurePool({ cluster: { js, jsm }, leaseMs }: EnsureDeps, pool: string): Promise<void> {
  const ackWait = nanos(leaseMs);
  const name = consumerOf(pool);
  const wanted = {
    durable_name: name,
    filter_subject: consumerFilter(pool),
    ack_policy: AckPolicy.Explicit,
    ack_wait: ackWait,
    max_deliver: -1,
  };
  const there = await jsm.consumers.info(STEPS, name).catch(() => undefined);
  if (!there) await jsm.consumers.add(STEPS, wanted);
  else if (there.config.ack_wait !== ackWait) await jsm.consumers.update(STEPS, name, wanted);
  await new Objm(js).create(bucketOf(pool), { ttl: nanos(BLOB_DAYS * DAY_MS) });
}

async function ensureStream(jsm: JetStreamManager, config: Parameters<JetStreamManager["streams"]["add"]>[0]): Promise<void> {
  const there = await jsm.streams.info(config.name).catch(() => undefined);
  if (!there) await jsm.streams.add(config);
}
