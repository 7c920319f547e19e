import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { type ClusterAccess, connectTo, isRefusal } from "../dispatch/nats/connection.ts";
import { openWorker, type WorkerHost } from "../dispatch/nats/worker.ts";
import { PROTOCOL, type Worker } from "../dispatch/port.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Presence } from "../protocol/workers.ts";
import { type Beacon, startBeacon } from "./beacon.ts";
import type { WorkerFile } from "./worker-file.ts";

/** What does the jobs, and what is said of it. */
export interface Workshop {
  worker: Worker;
  about: Pick<Presence, "version" | "engine" | "wall">;
}

export interface WorkerLifeDeps extends WorkerFile {
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
export async function liveAsWorker(deps: WorkerLifeDeps): Promise<void> {
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

async function work(deps: WorkerLifeDeps, connection: NatsConnection, gone: Promise<never>, shop: Workshop): Promise<void> {
  const { access, labels, capacity, log, note, signal } = deps;
  const { name } = access;
  let host: WorkerHost | undefined;
  let beacon: Beacon | undefined;
  const ended = new Promise<"stopped" | "drained">((end, fail) => {
    if (signal.aborted) end("stopped");
    signal.addEventListener("abort", () => end("stopped"), { once: true });
    gone.catch(fail);
    const describe = () => ({ ...shop.about, protocol: PROTOCOL, running: host?.running() ?? 0 });
    const onRefused = (reason: string) => fail(new UserError(reason));
    beacon = startBeacon({ connection, name, describe, onDrain: () => end("drained"), onRefused });
  });
  ended.catch(() => undefined);
  try {
    // Whoever is not wanted, or was drained before, takes nothing first.
    await beacon?.say();
    const isOver = await Promise.race([ended, sleep(0, "on" as const)]);
    if (isOver === "on") {
      const onChange = () => void beacon?.say();
      host = await openWorker({ connection, name, labels, capacity, worker: shop.worker, log, onChange });
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
  note: WorkerLifeDeps["note"],
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
