import { X509Certificate } from "node:crypto";
import { createConnection } from "node:net";
import { connect, type DetailedPeerCertificate } from "node:tls";
import { fingerprintOf } from "./certificate.ts";

const WITHIN_MS = 10_000;

/**
 * Fetches the authority that a server presents, as PEM text, if it has this fingerprint. This connection trusts and sends
 * nothing; later connections are verified against the returned authority.
 */
export function fetchAuthority(host: string, port: number, fingerprint: string): Promise<string | undefined> {
  return new Promise((found, failed) => {
    const socket = createConnection({ host, port });
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${WITHIN_MS / 1000} s`)), WITHIN_MS);
    const end = (settle: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      settle();
    };
    socket.on("error", (error) => end(() => failed(error)));
    socket.on("close", () => end(() => failed(new Error("the server hung up"))));
    // A NATS server sends a line in plain text before it speaks TLS.
    socket.once("data", () => {
      const secure = connect({ socket, servername: "localhost", rejectUnauthorized: false }, () => {
        const chain = chainOf(secure.getPeerCertificate(true));
        end(() => found(chain.map(pemOf).find((each) => fingerprintOf(each) === fingerprint)));
      });
      secure.on("error", (error) => end(() => failed(error)));
    });
  });
}

function chainOf(first: DetailedPeerCertificate): Buffer[] {
  const chain: Buffer[] = [];
  for (let each = first; each?.raw && chain.length < 10; each = each.issuerCertificate) {
    chain.push(each.raw);
    if (each.issuerCertificate === each) break;
  }
  return chain;
}

const pemOf = (raw: Buffer): string => new X509Certificate(raw).toString();
