import { errors, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { PROTOCOL } from "../port.ts";
import type { ClusterAccess } from "./connection.ts";
import { AnswerHead } from "./messages.ts";
import { fromWorker } from "./names.ts";
import { nkeyOf, signingKeyOf, verifyingKeyOf } from "./nkey.ts";
import { newNonce, seal, unseal } from "./sealed.ts";

export interface LinkDeps {
  connection: NatsConnection;
  access: Pick<ClusterAccess, "name" | "nkeySeed">;
  /** The daemon's public key, received when this worker joined. */
  daemon: string;
}

/** "away": the server says that no daemon listens. "silent": no answer signed by the daemon came in time. */
export type Answered = { data: unknown; bytes: Uint8Array } | "away" | "silent";

const TIMEOUT_MS = 2_000;
const HELLOS = 3;

/** The worker's side of every exchange: it obeys only the daemon's signed answers to its own questions. */
export function createLink({ connection, access, daemon }: LinkDeps) {
  const { publicKey } = nkeyOf(access.nkeySeed);
  const own = signingKeyOf(access.nkeySeed);
  const theirs = verifyingKeyOf(daemon);
  let session = "";
  let number = 0;

  function sealed(kind: string, data: unknown, bytes?: Uint8Array): { nonce: string; message: Uint8Array } {
    number += 1;
    const nonce = newNonce();
    const head = { protocol: PROTOCOL, from: publicKey, to: daemon, nonce, session, number, kind, data };
    return { nonce, message: seal(own, head, bytes) };
  }

  async function once(subject: string, message: Uint8Array, timeout: number): Promise<Msg | "away" | "silent"> {
    if (connection.isClosed()) return "silent";
    try {
      return await connection.request(subject, message, { timeout });
    } catch (error) {
      const isAway =
        error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
      return isAway ? "away" : "silent";
    }
  }

  return {
    connection,
    name: access.name,
    async ask(
      kind: string,
      data: unknown,
      {
        bytes,
        timeoutMs = TIMEOUT_MS,
        subject = fromWorker(access.name),
      }: { bytes?: Uint8Array; timeoutMs?: number; subject?: string } = {},
    ): Promise<Answered> {
      for (let tries = 0; tries < HELLOS; tries += 1) {
        const { nonce, message } = sealed(kind, data, bytes);
        const reply = await once(subject, message, timeoutMs);
        if (typeof reply === "string") return reply;
        const found = unseal(theirs, AnswerHead, reply.data);
        const head = found?.head;
        if (!head || head.from !== daemon || head.to !== publicKey || head.re !== nonce || head.protocol !== PROTOCOL)
          return "silent";
        if (head.session === undefined) return { data: head.data, bytes: found.bytes };
        if (head.session !== session) [session, number] = [head.session, 0];
      }
      return "silent";
    },
    /** Sent once and never repeated. */
    tell(kind: string, data: unknown): void {
      if (!connection.isClosed() && session !== "") connection.publish(fromWorker(access.name), sealed(kind, data).message);
    },
  };
}
export type Link = ReturnType<typeof createLink>;
