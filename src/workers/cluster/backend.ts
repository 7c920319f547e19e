import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ClusterConfig } from "../../home/config.ts";
import type { Paths } from "../../home/paths.ts";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import type { ClusterAccess } from "../jobs/nats/connection.ts";
import { type Nkey, nkeyOf } from "../jobs/nats/nkey.ts";
import { fingerprintOf } from "./certificate.ts";
import { namesOfHost } from "./host-names.ts";
import { daemonKey, ensureMaterials, filesIn } from "./materials.ts";
import { findServer } from "./program.ts";
import { daemonUser, type ServerUser } from "./rights.ts";
import { endLeftoverServer, superviseServer } from "./server.ts";
import { chooseServerAddress } from "./server-address.ts";
import { serverFile } from "./server-file.ts";

/** The NATS server behind a cluster: one that IO runs, or the user's own. */
export interface Backend {
  managed: boolean;
  /** The addresses for workers. */
  urls: string[];
  version: string | null;
  /** How the daemon itself connects. */
  access: ClusterAccess;
  /** The fingerprint of the authority, for invitations; undefined if the system's authorities apply or a person supplies it. */
  fingerprint: string | undefined;
  /** The key that all invitations share, if they share one. */
  inviteKey: Nkey | undefined;
  /** Admits the daemon and exactly these users; has no effect on a user's own server. */
  admit(users: readonly ServerUser[]): void;
  pid(): number | null;
  trouble(): string | null;
  stop(): Promise<void>;
}

export interface BackendDeps {
  config: ClusterConfig;
  paths: Paths;
  env: NodeJS.ProcessEnv;
  log: Log;
}

/** Starts a server and keeps it running. */
export async function openOwnServer({ config, paths, env, log }: BackendDeps, users: readonly ServerUser[]): Promise<Backend> {
  const program = await findServer(env, paths.home, config.server);
  const files = filesIn(paths.cluster);
  mkdirSync(paths.cluster, { recursive: true, mode: 0o700 });
  await endLeftoverServer({ files, home: paths.home, log });
  // Earlier versions kept jobs in JetStream.
  rmSync(join(files.data, "jetstream"), { recursive: true, force: true });
  const place = await chooseServerAddress(config, paths.cluster);
  const { ca, daemon } = ensureMaterials(paths.cluster, namesOfHost(config.host ? [config.host] : []));
  const logFile = join(paths.logs, "nats-server.log");
  const write = (all: readonly ServerUser[]) => {
    const { listen, port } = place;
    const text = serverFile({ files, listen, port, logFile, users: [daemonUser(daemon.publicKey), ...all] });
    writeFileAtomic(files.conf, text, 0o600);
  };
  write(users);
  const server = superviseServer({ program: program.path, files, logFile, home: paths.home, env, log });
  return {
    managed: true,
    urls: [place.url],
    version: program.version,
    access: { servers: [place.localUrl], nkeySeed: daemon.seed, tls: { ca }, name: "daemon" },
    fingerprint: fingerprintOf(ca),
    inviteKey: undefined,
    admit(all) {
      write(all);
      server.reload();
    },
    pid: server.pid,
    trouble: server.trouble,
    stop: server.stop,
  };
}

/** A server that the user runs: its owner adds the users. */
export function openForeignServer({ config, paths }: BackendDeps, urls: string[]): Backend {
  const { seed } = config.nkeyFile === undefined ? daemonKey(paths.cluster) : keyIn("nkeyFile", config.nkeyFile);
  const inviteKey = config.inviteNkeyFile === undefined ? undefined : keyIn("inviteNkeyFile", config.inviteNkeyFile);
  const ca = config.ca === undefined ? undefined : textOf("ca", config.ca);
  return {
    managed: false,
    urls,
    version: null,
    access: { servers: urls, nkeySeed: seed, name: "daemon", ...(ca !== undefined && { tls: { ca } }) },
    fingerprint: undefined,
    inviteKey,
    admit: () => undefined,
    pid: () => null,
    trouble: () => null,
    stop: async () => undefined,
  };
}

function keyIn(key: string, path: string): Nkey {
  const seed = /\bSU[A-Z2-7]{56}\b/.exec(textOf(key, path))?.[0];
  if (seed === undefined) throw new UserError(`cluster.${key}: ${path} holds no seed of a user's nkey (SU…).`);
  return nkeyOf(seed);
}

function textOf(key: string, path: string): string {
  const text = smallTextAt(path, 100_000);
  if (text === undefined) throw new UserError(`cluster.${key}: ${path} is no file that can be read.`);
  return text;
}
