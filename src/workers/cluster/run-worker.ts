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

/** The worker that runs the jobs, and its description. */
export interface WorkerSetup {
  worker: Worker;
  about: Pick<Presence, "version" | "engine" | "wall">;
}

export interface RunAsWorkerDeps extends WorkerFile {
  /** Called once the server has accepted this worker. */
  prepare: () => Promise<WorkerSetup>;
  log: Log;
  /** Prints a line for a watching person. */
  note: (text: string) => void;
  /** Ends the worker: its running jobs go to others. */
  signal: AbortSignal;
}

const RETRY_MS = 1_000;

/** Works for the cluster until it is stopped, drained, or rejected; a rejection is thrown as a `UserError`. */
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

async function work(deps: RunAsWorkerDeps, connection: NatsConnection, gone: Promise<never>, setup: WorkerSetup): Promise<void> {
  const { access, daemon, capacity, log, note, signal } = deps;
  const { name } = access;
  const link = createLink({ connection, access, daemon });
  let host: WorkerHost | undefined;
  let beacon: Beacon | undefined;
  const ended = new Promise<"stopped" | "drained">((end, fail) => {
    if (signal.aborted) end("stopped");
    signal.addEventListener("abort", () => end("stopped"), { once: true });
    gone.catch(fail);
    const describe = () => ({ ...setup.about, protocol: PROTOCOL, running: host?.running() ?? 0 });
    const onRefused = (reason: string) => fail(new UserError(reason));
    beacon = startBeacon({ link, describe, onDrain: () => end("drained"), onRefused });
  });
  ended.catch(() => undefined);
  try {
    // A worker that is rejected or was drained must not take a job first.
    await beacon?.say();
    const isOver = await Promise.race([ended, sleep(0, "on" as const)]);
    if (isOver === "on") {
      const onChange = () => void beacon?.say();
      host = openWorker({ link, capacity, worker: setup.worker, log, onChange });
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

/** Undefined if it was stopped meanwhile. Throws at once if the key is refused. */
async function connectPatiently(
  access: ClusterAccess,
  note: RunAsWorkerDeps["note"],
  signal: AbortSignal,
): Promise<NatsConnection | undefined> {
  let lastNote = "";
  while (!signal.aborted) {
    try {
      return await connectTo(access);
    } catch (error) {
      if (isRefusal(error)) throw new UserError(REVOKED);
      const why = `The server at ${access.servers.join()} cannot be reached, and is tried again: ${messageOf(error)}`;
      if (why !== lastNote) note(why);
      lastNote = why;
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
