import type { Dispatcher } from "undici";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { WireFailure } from "./failure.ts";
import type { ChooseProxy } from "./proxy.ts";

/** A request on its way to a provider. */
export interface Outgoing {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

/** What came back, whatever its status. */
export interface Incoming {
  status: number;
  headers: Record<string, string>;
  body: AsyncIterable<Uint8Array>;
  /** Hangs up, for an answer that is over before its connection is. */
  close?: () => void;
}

/** Carries a request to a provider. Throws a `WireFailure` when no answer came. */
export type Transport = (request: Outgoing) => Promise<Incoming>;

const CONNECT_MS = 15_000;

/** Over HTTP. How long an answer may take is for the turn to say, so only connecting has a limit of its own. */
export function createHttpTransport(chooseProxy: ChooseProxy): Transport {
  const dispatchers = new Map<string, Promise<Dispatcher>>();

  const through = async (proxy: string | undefined): Promise<Dispatcher> => {
    // Loaded when a model is first asked: the start is quicker without it.
    const { Agent, Pool, ProxyAgent, Socks5ProxyAgent } = (await import("undici")).default;
    const patience = { headersTimeout: 0, bodyTimeout: 0, connectTimeout: CONNECT_MS };
    if (proxy === undefined) return new Agent(patience);
    if (/^socks/i.test(proxy)) return new Socks5ProxyAgent(proxy.replace(/^socks\w*:/i, "socks5:"), patience);
    const uri = /^[a-z]+:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
    // Many proxies tunnel to secure ports only, so a plain request is not put into a tunnel.
    return new ProxyAgent({
      ...patience,
      uri,
      proxyTunnel: false,
      factory: (origin, options) => new Pool(origin, { ...options, ...patience }),
    });
  };

  return async ({ method, url, headers, body, signal }) => {
    const address = new URL(url);
    const proxy = await chooseProxy(address);
    const dispatcher = dispatchers.get(proxy ?? "") ?? through(proxy);
    dispatchers.set(proxy ?? "", dispatcher);
    const { request } = (await import("undici")).default;
    try {
      const answer = await request(address, {
        method,
        // Without this word a server may compress as it likes.
        headers: { "accept-encoding": "identity", ...headers },
        ...(body !== undefined && { body }),
        signal,
        dispatcher: await dispatcher,
      });
      return {
        status: answer.statusCode,
        headers: flat(answer.headers),
        body: whole(answer.body, address, proxy, signal),
        // What hanging up interrupts is of no interest to anybody.
        close: () => void answer.body.on("error", () => undefined).destroy(),
      };
    } catch (error) {
      throw signal.aborted ? error : unanswered(error, address, proxy);
    }
  };
}

async function* whole(
  body: AsyncIterable<Uint8Array>,
  address: URL,
  proxy: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw signal.aborted ? error : unanswered(error, address, proxy);
  }
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/** Why no answer came, in words that name the place and not the code. */
function unanswered(error: unknown, { host }: URL, proxy: string | undefined): WireFailure {
  const cause = error instanceof Error && error.cause ? error.cause : error;
  const code = codeOf(cause) ?? codeOf(error) ?? "";
  const at = proxy ? `${host}, through the proxy ${hideUser(proxy)}` : host;
  const said: [RegExp, string][] = [
    [/ENOTFOUND|EAI_AGAIN|EAI_/, `the name ${at} could not be looked up`],
    [/ECONNREFUSED/, `nothing listens at ${at}`],
    [/TIMEDOUT|CONNECT_TIMEOUT/, `${at} did not take the connection in time`],
    [/EHOSTUNREACH|ENETUNREACH|ENETDOWN/, `there is no way to ${at} from this machine's network`],
    [/WRONG_VERSION|EPROTO|PACKET_LENGTH/, `${at} does not speak TLS`],
    [/HPE_/, `${at} does not speak HTTP`],
    [/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|TLS|SSL/, `the certificate of ${at} was not accepted (${code})`],
    [/ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_RES/, `${at} cut the connection`],
  ];
  const words = said.find(([pattern]) => pattern.test(code))?.[1] ?? `${at} could not be asked: ${messageOf(cause)}`;
  return new WireFailure(words, { status: 502, fault: "network", code });
}

function hideUser(proxy: string): string {
  return proxy.replace(/\/\/[^@/]*@/, "//");
}
