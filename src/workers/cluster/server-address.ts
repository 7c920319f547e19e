import { lookup } from "node:dns/promises";
import { createServer, isIP } from "node:net";
import { join } from "node:path";
import type { ClusterConfig } from "../../home/config.ts";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { UserError } from "../../lib/errors.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { isLoopback, isOwnAddress, likelyAddress } from "./host-names.ts";

/** Where IO's own server listens, and its addresses. */
export interface ServerAddress {
  listen: string;
  port: number;
  /** The address for workers. */
  url: string;
  /** The address for this host. */
  localUrl: string;
}

const USUAL_PORT = 4222;
const LOOPBACK = "127.0.0.1";

/** The address to listen on for workers that use this name: this host's own address of that name, else all addresses. */
async function addressFor(host: string): Promise<string> {
  const found = isIP(host) ? [{ address: host }] : await lookup(host, { all: true }).catch(() => []);
  const own = found.map(({ address }) => address).filter((address) => isOwnAddress(address));
  return own.find((address) => !isLoopback(address)) ?? own[0] ?? "0.0.0.0";
}

/** Chooses the port on the first start and keeps it, because workers store it. */
export async function chooseServerAddress(config: ClusterConfig, folder: string): Promise<ServerAddress> {
  const { host, port } = config;
  const listen = config.listen ?? (host === undefined ? LOOPBACK : await addressFor(host));
  const chosen = await choosePort({ listen, port, file: join(folder, "port") });
  const near = { "0.0.0.0": "127.0.0.1", "::": "::1" }[listen] ?? listen;
  const far = host ?? (near === listen ? listen : likelyAddress());
  return { listen, port: chosen, url: urlOf(far, chosen), localUrl: urlOf(near, chosen) };
}

interface Wanted {
  listen: string;
  port: number | undefined;
  file: string;
}

async function choosePort({ listen, port, file }: Wanted): Promise<number> {
  const kept = Number.parseInt(smallTextAt(file) ?? "", 10) || undefined;
  const wanted = port ?? kept ?? USUAL_PORT;
  const isFree = (await tryPort(listen, wanted)) !== undefined;
  if (!isFree && (port !== undefined || kept !== undefined))
    throw new UserError(
      `Port ${wanted} is taken by another program. Set cluster.port in config.json to another one${kept === undefined ? "" : "; workers that joined before have to join again then"}.`,
    );
  const chosen = isFree ? wanted : await tryPort(listen, 0);
  if (chosen === undefined) throw new UserError(`No port can be opened at ${listen}. Mend cluster.listen in config.json.`);
  writeFileAtomic(file, `${chosen}\n`, 0o600);
  return chosen;
}

/** The port, if it is free. */
function tryPort(host: string, port: number): Promise<number | undefined> {
  return new Promise((done) => {
    const probe = createServer();
    probe.once("error", () => done(undefined));
    probe.listen(port, host, () => {
      const address = probe.address();
      probe.close(() => done(typeof address === "object" && address !== null ? address.port : undefined));
    });
  });
}

const urlOf = (host: string, port: number): string => `tls://${host.includes(":") ? `[${host}]` : host}:${port}`;
