import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { codeOf, messageOf } from "../../lib/errors.ts";
import type { Carried, Carrier, Outgoing } from "./carrier.ts";
import { WireFailure } from "./failure.ts";
import type { ChooseProxy } from "./proxy.ts";

/** The response, whatever its status. */
export interface Incoming {
  status: number;
  headers: Record<string, string>;
  body: AsyncIterable<Uint8Array>;
  /** Closes the connection, for an answer that is complete before its connection is. */
  close?: () => void;
}

/** Sends a request to a provider. Throws a `WireFailure` if there is no response. */
export type Transport = (request: Outgoing) => Promise<Incoming>;

const CONNECT_MS = 15_000;

/** Over HTTP. The turn limits how long an answer may take, so only connecting has a time-out here. */
export function createHttpTransport(chooseProxy: ChooseProxy): Transport {
  const direct = createDirect();
  const proxies = new Map<string, Promise<Carrier>>();

  const through = (proxy: string): Promise<Carrier> => {
    const known = proxies.get(proxy);
    if (known) return known;
    // A file of its own, because its library is large and few people have a proxy.
    const carrier = import("./through-proxy.ts").then(({ createProxied }) => createProxied(proxy, CONNECT_MS));
    proxies.set(proxy, carrier);
    return carrier;
  };

  return async (request) => {
    const address = new URL(request.url);
    const proxy = await chooseProxy(address);
    const { signal } = request;
    try {
      const carry = proxy === undefined ? direct : await through(proxy);
      // Without this header a server may use any compression.
      const headers = { "accept-encoding": "identity", ...request.headers };
      const answer = await carry({ ...request, headers }, address);
      return {
        status: answer.status,
        headers: flat(answer.headers),
        body: whole(answer.body, address, proxy, signal),
        // Errors of an abandoned response do not matter.
        close: () => void answer.body.on("error", () => undefined).destroy(),
      };
    } catch (error) {
      throw signal.aborted ? error : unanswered(error, address, proxy);
    }
  };
}

/** Directly to the provider, over kept-alive connections. */
function createDirect(): Carrier {
  const secure = new https.Agent({ keepAlive: true });
  const plain = new http.Agent({ keepAlive: true });

  const send = (request: Outgoing, address: URL): Promise<Carried> =>
    new Promise((answered, failed) => {
      const { method, headers, body, signal } = request;
      const [library, agent] = address.protocol === "https:" ? [https, secure] : [http, plain];
      const sent = library.request(address, { method, headers, signal, agent });
      sent.once("socket", (socket) => limitConnecting(socket, sent));
      let begun = false;
      sent.once("response", (answer) => {
        begun = true;
        answered({ status: answer.statusCode ?? 0, headers: answer.headers, body: answer });
      });
      sent.on("error", (error) => {
        // The server closed an idle connection just as it was reused: nobody has read the request.
        const stale = !begun && sent.reusedSocket && codeOf(error) === "ECONNRESET";
        if (stale) send(request, address).then(answered, failed);
        else failed(error);
      });
      sent.end(body);
    });
  return send;
}

function limitConnecting(socket: Socket, sent: http.ClientRequest): void {
  if (!socket.connecting) return;
  const timer = setTimeout(() => sent.destroy(Object.assign(new Error("no connection"), { code: "ETIMEDOUT" })), CONNECT_MS);
  socket.once("connect", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
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

/** Why there is no response, naming the host instead of an error code. */
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
