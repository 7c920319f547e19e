import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Presence } from "../../protocol/workers.ts";
import { type ClusterAccess, connectTo, isRefusal } from "../jobs/nats/connection.ts";
import { createLink } from "../jobs/nats/link.ts";
import { openWorker, type WorkerHost } from "../jobs/nats/worker.ts";
import { PROTOCOL, type Worker } from "../jobs/port.ts";
import { type Beacon, startBeacon } from "./beacon.ts";
import type { WorkerFile } from "./worker-file.ts";

/** What does the jobs, and what is said of it. */
export interface Workshop {
  worker: Worker;
  about: Pick<Presence, "version" | "engine" | "wall">;
}

export interface RunAsWorkerDeps extends WorkerFile {
  /** Called once the server has let this worker in. */
  prepare: () => Promise<Workshop>;
  log: Log;
  /** Tells a person who watches. */
  note: (text: string) => void;
  /** Ends it: what it has under way goes to another. */
  signal: AbortSignal;
}

const RETRY_MS = 1_000;

/** Works for the cluster until it is ended, drained, or not wanted any more, which is thrown as a sentence. */
export async function runAsWorker(deps: RunAsWorkerDeps): Promise<void> {
  const { access, prepare, note, signal } = deps;
  const connection = await connectPatiently(access, note, signal);
  if (!connection) return;
  const gone = connection.closed().then(() => {
    throw new UserError(REVOKED);
  });
  gone.catch(() => undefined);
  try {
    await work(deps, connection, gone, await Promise.race([prepare(), gone]));
  } finally {
    await connection.close();
  }
}

async function work(deps: RunAsWorkerDeps, connection: NatsConnection, gone: Promise<never>, shop: Workshop): Promise<void> {
  const { access, daemon, capacity, log, note, signal } = deps;
  const { name } = access;
  const link = createLink({ connection, access, daemon });
  let host: WorkerHost | undefined;
  let beacon: Beacon | undefined;
  const ended = new Promise<"stopped" | "drained">((end, fail) => {
    if (signal.aborted) end("stopped");
    signal.addEventListener("abort", () => end("stopped"), { once: true });
    gone.catch(fail);
    const describe = () => ({ ...shop.about, protocol: PROTOCOL, running: host?.running() ?? 0 });
    const onRefused = (reason: string) => fail(new UserError(reason));
    beacon = startBeacon({ link, describe, onDrain: () => end("drained"), onRefused });
  });
  ended.catch(() => undefined);
  try {
    // Whoever is not wanted, or was drained before, takes nothing first.
    await beacon?.say();
    const isOver = await Promise.race([ended, sleep(0, "on" as const)]);
    if (isOver === "on") {
      const onChange = () => void beacon?.say();
      host = openWorker({ link, capacity, worker: shop.worker, log, onChange });
      note(`${name} works for the cluster at ${access.servers.join()}.`);
    }
    if ((await ended) === "stopped") return;
    note(`${name} was drained and takes no more jobs.`);
    if (host) await Promise.race([host.drain(), gone, untilAborted(signal)]);
  } finally {
    beacon?.stop();
    await host?.close();
  }
}

/** Undefined when it was ended meanwhile. A key that is refused is not tried for ever. */
async function connectPatiently(
  access: ClusterAccess,
  note: RunAsWorkerDeps["note"],
  signal: AbortSignal,
): Promise<NatsConnection | undefined> {
  let told = "";
  while (!signal.aborted) {
    try {
      return await connectTo(access);
    } catch (error) {
      if (isRefusal(error)) throw new UserError(REVOKED);
      const why = `The server at ${access.servers.join()} cannot be reached, and is tried again: ${messageOf(error)}`;
      if (why !== told) note(why);
      told = why;
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((end) => {
    if (signal.aborted) end();
    signal.addEventListener("abort", () => end(), { once: true });
  });
}

const REVOKED =
  'The server refuses this worker: its key was revoked, or never let in. Join again with a new invitation ("io worker invite" on the other host), after moving worker.json away.';
