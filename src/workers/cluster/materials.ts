import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { createNkey, type Nkey, nkeyOf } from "../jobs/nats/nkey.ts";
import { createAuthority, type Identity, isStillGood, signServer } from "./certificate.ts";

/** The files of the server that IO runs, in a private folder. */
export interface ClusterFiles {
  folder: string;
  conf: string;
  pid: string;
  data: string;
  certificate: string;
  key: string;
}

export function filesIn(folder: string): ClusterFiles {
  return {
    folder,
    conf: join(folder, "nats-server.conf"),
    pid: join(folder, "nats-server.pid"),
    data: join(folder, "data"),
    certificate: join(folder, "server.crt"),
    key: join(folder, "server.key"),
  };
}

/** Creates the authority, a certificate for this host's current names, and the daemon's key; keeps those that are still good. */
export function ensureMaterials(folder: string, names: readonly string[]): { ca: string; daemon: Nkey } {
  const files = filesIn(folder);
  for (const each of [folder, files.data]) mkdirSync(each, { recursive: true, mode: 0o700 });
  const authority = ensureIdentity(join(folder, "ca"), () => createAuthority());
  const known = readIdentity(join(folder, "server"));
  if (!known || !isStillGood(known, authority, names)) {
    const { certificate, key } = signServer(authority, names);
    // The file includes the authority: a joining worker compares it with the invitation's fingerprint.
    writeIdentity(join(folder, "server"), { certificate: certificate + authority.certificate, key });
  }
  return { ca: authority.certificate, daemon: daemonKey(folder) };
}

/** The daemon's own key, created on first use. */
export function daemonKey(folder: string): Nkey {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, "daemon.nkey");
  const seed = smallTextAt(path)?.trim();
  if (seed) return nkeyOf(seed);
  const made = createNkey();
  writeFileAtomic(path, `${made.seed}\n`, 0o600);
  return made;
}

function ensureIdentity(base: string, make: () => Identity): Identity {
  const known = readIdentity(base);
  if (known) return known;
  const made = make();
  writeIdentity(base, made);
  return made;
}

function readIdentity(base: string): Identity | undefined {
  const [certificate, key] = [smallTextAt(`${base}.crt`), smallTextAt(`${base}.key`)];
  return certificate && key ? { certificate, key } : undefined;
}

/** Writes the key first: a certificate without a key is created anew. */
function writeIdentity(base: string, { certificate, key }: Identity): void {
  writeFileAtomic(`${base}.key`, key, 0o600);
  writeFileAtomic(`${base}.crt`, certificate, 0o600);
}
