import undici, { type Dispatcher } from "undici";
import type { Carrier } from "./carrier.ts";

interface Patience {
  headersTimeout: number;
  bodyTimeout: number;
  connectTimeout: number;
}

/** To the provider through an HTTP or SOCKS proxy. */
export function createProxied(proxy: string, connectMs: number): Carrier {
  const dispatcher = dispatcherFor(proxy, { headersTimeout: 0, bodyTimeout: 0, connectTimeout: connectMs });
  return async ({ method, headers, body, signal }, address) => {
    const answer = await undici.request(address, { method, headers, ...(body !== undefined && { body }), signal, dispatcher });
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  };
}

function dispatcherFor(proxy: string, patience: Patience): Dispatcher {
  if (/^socks/i.test(proxy)) return new undici.Socks5ProxyAgent(proxy.replace(/^socks\w*:/i, "socks5:"), patience);
  const uri = /^[a-z]+:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
  // Many proxies tunnel only to secure ports, so plain requests are not tunnelled.
  return new undici.ProxyAgent({
    ...patience,
    uri,
    proxyTunnel: false,
    factory: (origin, options) => new undici.Pool(origin, { ...options, ...patience }),
  });
}
