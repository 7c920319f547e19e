import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import type { ClusterConfig } from "../../home/config.ts";
import type { Paths } from "../../home/paths.ts";
import { conflict, messageOf, missing, unavailable } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { ClusterStatus, Invited, Worker } from "../../protocol/workers.ts";
import type { WorkerRows } from "../../store/workers.ts";
import { type ClusterAccess, connectOnce, connectTo, isRefusal } from "../jobs/nats/connection.ts";
import { createDesk, type Desk } from "../jobs/nats/desk.ts";
import { openForeignServer, openOwnServer } from "./backend.ts";
import { inviteUrl } from "./invitation.ts";
import { createInvitations, type OpenInvitation } from "./invitations.ts";
import { receiveWorkers } from "./pairing.ts";
import { hearWorkers } from "./presence.ts";
import { pairingUser, type ServerUser, workerUser } from "./rights.ts";
import { workerOf } from "./worker-view.ts";

export interface ClusterDeps {
  config: ClusterConfig;
  paths: Paths;
  env: NodeJS.ProcessEnv;
  workers: WorkerRows;
  /** Serves workers through the connection until `leave`, which does not close it. */
  attend: (connection: NatsConnection, desk: Desk) => { leave(): void };
  /** Redacts a secret from everything that is written. */
  hide: (secret: string) => void;
  log: Log;
}

/** Workers on other hosts, and the server between. */
export interface Cluster {
  access: ClusterAccess;
  status(): Pick<ClusterStatus, "state" | "managed" | "url" | "pid" | "version" | "detail">;
  /** Whether the daemon is connected, at the latest after this time. */
  ready(withinMs: number): Promise<boolean>;
  invite(): Promise<Invited>;
  drain(name: string): Worker;
  /** Removes the worker's key and closes its connection. */
  revoke(name: string): void;
  stop(): Promise<void>;
}

const RETRY_MS = 250;
const KNOWN_MS = 15_000;

/** Starts IO's own server if that is used, and connects. Rejects if it cannot even try. */
export async function openCluster({ config, paths, env, workers, attend, hide, log }: ClusterDeps): Promise<Cluster> {
  const deps = { config, paths, env, log };
  const urls = config.url?.split(",");
  const invitations = createInvitations({ onChange: () => backend.admit(users()) });
  const backend = urls ? openForeignServer(deps, urls) : await openOwnServer(deps, users());
  hide(backend.access.nkeySeed);
  const ending = new AbortController();
  let connection: NatsConnection | undefined;
  let attended: { leave(): void } | undefined;
  const desk = createDesk({ seed: backend.access.nkeySeed, keyOf: (name) => workers.find(name)?.publicKey });
  let trouble: string | null = null;
  const connecting = connect();

  function users(): ServerUser[] {
    return [...workers.all().map(workerUser), ...invitations.publicKeys().map(pairingUser)];
  }

  async function connect(): Promise<void> {
    while (!ending.signal.aborted) {
      try {
        const made = await connectTo(backend.access, { patient: true });
        if (ending.signal.aborted) return await made.close();
        trouble = null;
        connection = made;
        void follow(made);
        receiveWorkers({
          connection: made,
          invitations,
          workers,
          log,
          answer: () => ({ servers: backend.urls, managed: backend.managed, daemon: desk.publicKey }),
        });
        hearWorkers({ connection: made, desk, workers, log });
        attended = attend(made, desk);
        log.info("the cluster is connected", { server: backend.urls.join() });
        return;
      } catch (error) {
        trouble = isRefusal(error) ? REFUSED : messageOf(error);
        await sleep(RETRY_MS, undefined, { signal: ending.signal }).catch(() => undefined);
      }
    }
  }

  /** The client reconnects by itself; `trouble` reports it meanwhile. */
  async function follow(made: NatsConnection): Promise<void> {
    for await (const { type } of made.status()) {
      if (type === "disconnect") trouble = "the connection to the server was lost, and is tried again";
      if (type === "reconnect") trouble = null;
    }
  }

  function status(): Pick<ClusterStatus, "state" | "managed" | "url" | "pid" | "version" | "detail"> {
    const detail = backend.trouble() ?? trouble;
    const state = connection && trouble === null ? "running" : detail === null ? "starting" : "failed";
    const { managed, version } = backend;
    return { state, managed, url: backend.urls.join(), pid: backend.pid(), version, detail: state === "running" ? null : detail };
  }

  /** Waits until the server knows the invitation's key, before anybody gets the invitation. */
  async function untilKnown({ seed, publicKey }: OpenInvitation): Promise<void> {
    if (!backend.managed) return;
    const asker = { ...backend.access, nkeySeed: seed, name: publicKey };
    const made = await connectOnce(asker, KNOWN_MS, { untilKnown: true }).catch((error: unknown) => {
      throw unavailable(`The server does not take invitations: ${messageOf(error)}. Try again.`, error);
    });
    await made.close();
  }

  return {
    access: backend.access,
    status,
    async ready(withinMs) {
      await Promise.race([connecting, sleep(withinMs, undefined, { signal: ending.signal }).catch(() => undefined)]);
      return status().state === "running";
    },
    async invite() {
      if (status().state !== "running")
        throw unavailable(`The cluster is not connected: ${status().detail ?? "it is just starting"}.`);
      const made = invitations.add(backend.inviteKey);
      if (!made) throw conflict("Too many invitations are open. Use one of them, or wait ten minutes.");
      hide(made.code);
      hide(made.seed);
      await untilKnown(made);
      const [, scheme = "tls", server = ""] = /^(\w+):\/\/([^/]+)/.exec(backend.urls[0] ?? "") ?? [];
      const { fingerprint } = backend;
      const url = inviteUrl({ scheme, server, seed: made.seed, ...(fingerprint && { fingerprint }) });
      return { url, code: made.code, expiresAt: made.expiresAt.toISOString() };
    },
    drain(name) {
      if (!workers.find(name)) throw unknown(name);
      workers.drain(name);
      return workerOf(workers.find(name)!);
    },
    revoke(name) {
      if (!workers.remove(name)) throw unknown(name);
      backend.admit(users());
      log.info("a worker was revoked", { name });
    },
    async stop() {
      ending.abort();
      invitations.clear();
      await connecting;
      attended?.leave();
      await connection?.close();
      await backend.stop();
    },
  };
}

const REFUSED =
  "the server refuses the daemon's key. On a server of your own, let its user in and name the file with its seed in cluster.nkeyFile";

const unknown = (name: string) => missing(`There is no worker called "${name}". "io worker list" shows those there are.`);
