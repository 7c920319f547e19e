import type { KeyObject } from "node:crypto";
import type { Msg } from "@nats-io/transport-node";
import type { z } from "zod";
import { PROTOCOL } from "../port.ts";
import { inboxOf } from "./connection.ts";
import { QuestionHead } from "./messages.ts";
import { isUserKey, nkeyOf, signingKeyOf, verifyingKeyOf } from "./nkey.ts";
import { claimedHead, newNonce, seal, unseal } from "./sealed.ts";

/** A question whose signature and number were verified. */
export interface VerifiedQuestion {
  worker: string;
  kind: string;
  data: unknown;
  bytes: Uint8Array;
  answer(data: unknown, bytes?: Uint8Array): void;
}

export interface DeskDeps {
  /** The seed of the daemon's key; every worker received the public half when it joined. */
  seed: string;
  /** The public key of an admitted worker. */
  keyOf: (worker: string) => string | undefined;
}

/** Valid sessions per worker: it may briefly have a second connection. */
const MOST_SESSIONS = 8;
const MOST_BYTES = 1_000_000;

/** The key that a message claims as its sender's; anybody could claim it. */
function senderOf(message: Uint8Array): string | undefined {
  const from = QuestionHead.safeParse(claimedHead(message)).data?.from;
  return from !== undefined && isUserKey(from) ? from : undefined;
}

/**
 * The daemon's side of every exchange: verifies the questions that workers sign, and signs each answer for that question alone.
 */
export function createDesk({ seed, keyOf }: DeskDeps) {
  const { publicKey } = nkeyOf(seed);
  const own = signingKeyOf(seed);
  const keys = new Map<string, KeyObject>();
  /** The last number of each session, by the worker's key. */
  const sessions = new Map<string, Map<string, number>>();

  function keyFor(worker: string): { text: string; key: KeyObject } | undefined {
    const text = keyOf(worker);
    if (text === undefined) return undefined;
    const key = keys.get(text) ?? verifyingKeyOf(text);
    keys.set(text, key);
    return { text, key };
  }

  function newSession(from: string): string {
    const known = sessions.get(from) ?? new Map<string, number>();
    const session = newNonce();
    sessions.set(from, known.set(session, 0));
    if (known.size > MOST_SESSIONS) known.delete(known.keys().next().value!);
    return session;
  }

  return {
    publicKey,
    /** Tells the signer of a message why it is refused, without trusting anything in the message. */
    refuse(
      worker: string,
      message: Pick<Msg, "data" | "reply" | "respond">,
      whyNot: (head: z.infer<typeof QuestionHead>) => object,
    ) {
      const from = message.data.length <= MOST_BYTES ? senderOf(message.data) : undefined;
      const found = from && unseal(verifyingKeyOf(from), QuestionHead, message.data);
      if (!found || found.head.to !== publicKey || !message.reply?.startsWith(`${inboxOf(worker)}.`)) return;
      const { nonce, protocol } = found.head;
      message.respond(seal(own, { protocol, from: publicKey, to: from, re: nonce, data: whyNot(found.head) }));
    },
    /**
     * A worker's verified question; undefined if the worker did not sign it, it is for another daemon, or it was received before.
     */
    open(worker: string, message: Pick<Msg, "data" | "reply" | "respond">): VerifiedQuestion | undefined {
      const known = message.data.length <= MOST_BYTES ? keyFor(worker) : undefined;
      const found = known && unseal(known.key, QuestionHead, message.data);
      if (!found || found.head.from !== known.text || found.head.to !== publicKey || found.head.protocol !== PROTOCOL)
        return undefined;
      const { nonce, session, number, kind, data } = found.head;
      const respond = (more: object, bytes?: Uint8Array) => {
        const head = { protocol: PROTOCOL, from: publicKey, to: known.text, re: nonce, data: null, ...more };
        // Answers only into the worker's own inbox, whatever reply subject the question names.
        if (message.reply?.startsWith(`${inboxOf(worker)}.`)) message.respond(seal(own, head, bytes));
      };
      const last = sessions.get(known.text)?.get(session);
      if (last === undefined) {
        respond({ session: newSession(known.text) });
        return undefined;
      }
      if (number <= last) return undefined;
      sessions.get(known.text)?.set(session, number);
      return { worker, kind, data, bytes: found.bytes, answer: (answer, bytes) => respond({ data: answer }, bytes) };
    },
  };
}
export type Desk = ReturnType<typeof createDesk>;
