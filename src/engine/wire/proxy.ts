import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isAllowed, isPublic } from "../../lib/addresses.ts";

export interface ProxyDeps {
  env: NodeJS.ProcessEnv;
  /** A proxy that was set for this provider, used for every address. */
  always?: string | undefined;
  resolve?: (host: string) => Promise<string[]>;
}

/** The proxy for a request; undefined for a direct connection. */
export type ChooseProxy = (url: URL) => Promise<string | undefined>;

/** Follows the usual variables, lower case first. This machine and its own network are reached directly. */
export function createProxyChoice({ env, always, resolve = addressesOf }: ProxyDeps): ChooseProxy {
  const value = (name: string) => env[name.toLowerCase()] || env[name] || undefined;
  const decided = new Map<string, Promise<string | undefined>>();

  const decide = async (url: URL): Promise<string | undefined> => {
    const proxy = (url.protocol === "https:" ? value("HTTPS_PROXY") : value("HTTP_PROXY")) ?? value("ALL_PROXY");
    if (!proxy || isExempt(value("NO_PROXY") ?? "", url)) return undefined;
    const host = hostOf(url);
    if (isIP(host)) return isPublic(host) ? proxy : undefined;
    if (!host.includes(".") || /(^|\.)(localhost|local|lan|internal|home\.arpa)$/i.test(host)) return undefined;
    // A name that only the proxy can resolve is not in this network.
    const addresses = await resolve(host).catch(() => []);
    return addresses.length > 0 && addresses.every((address) => !isPublic(address)) ? undefined : proxy;
  };

  return (url) => {
    if (always !== undefined) return Promise.resolve(always);
    const known = decided.get(url.origin) ?? decide(url);
    decided.set(url.origin, known);
    return known;
  };
}

/** Whether `NO_PROXY` matches this host: a name and its subdomains, with or without port, an address, a network, or `*`. */
function isExempt(noProxy: string, url: URL): boolean {
  const host = hostOf(url).toLowerCase();
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return noProxy
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((entry) => {
      if (entry === "*") return true;
      const [, name = entry, only] = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry) ?? [];
      if (only !== undefined && only !== port) return false;
      const wanted = name
        .toLowerCase()
        .replace(/^\[(.*)\]$/, "$1")
        .replace(/^\*?\./, "");
      return host === wanted || host.endsWith(`.${wanted}`) || (isIP(host) !== 0 && isAllowed([wanted], host, host));
    });
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

async function addressesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
