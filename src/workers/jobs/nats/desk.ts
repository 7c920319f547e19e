import type { KeyObject } from "node:crypto";
import type { Msg } from "@nats-io/transport-node";
import type { z } from "zod";
import { PROTOCOL } from "../port.ts";
import { inboxOf } from "./connection.ts";
import { QuestionHead } from "./messages.ts";
import { isUserKey, nkeyOf, signingKeyOf, verifyingKeyOf } from "./nkey.ts";
import { claimedHead, newNonce, seal, unseal } from "./sealed.ts";

/** A question that its worker has signed, once. */
export interface Heard {
  worker: string;
  kind: string;
  data: unknown;
  bytes: Uint8Array;
  answer(data: unknown, bytes?: Uint8Array): void;
}

export interface DeskDeps {
  /** The seed of the daemon's key, whose public half every worker was given when it joined. */
  seed: string;
  /** The key of a worker that was let in. */
  keyOf: (worker: string) => string | undefined;
}

/** Sessions of one worker that count: it may have a connection more for a moment. */
const MOST_SESSIONS = 8;
const MOST_BYTES = 1_000_000;

/** The key that a message names as its own, which may be anybody's. */
function senderOf(message: Uint8Array): string | undefined {
  const from = QuestionHead.safeParse(claimedHead(message)).data?.from;
  return from !== undefined && isUserKey(from) ? from : undefined;
}

/** The daemon's side of every exchange: takes what a worker has signed for it, and signs each answer for that question alone. */
export function createDesk({ seed, keyOf }: DeskDeps) {
  const { publicKey } = nkeyOf(seed);
  const own = signingKeyOf(seed);
  const keys = new Map<string, KeyObject>();
  /** The last number of each session, by worker and key. */
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
    /** Tells whoever signed this why it is not wanted; nothing of it is believed. */
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
    /** What a worker of this name said; undefined where it did not sign it, it is for another, or it was heard before. */
    open(worker: string, message: Pick<Msg, "data" | "reply" | "respond">): Heard | undefined {
      const known = message.data.length <= MOST_BYTES ? keyFor(worker) : undefined;
      const found = known && unseal(known.key, QuestionHead, message.data);
      if (!found || found.head.from !== known.text || found.head.to !== publicKey || found.head.protocol !== PROTOCOL)
        return undefined;
      const { nonce, session, number, kind, data } = found.head;
      const respond = (more: object, bytes?: Uint8Array) => {
        const head = { protocol: PROTOCOL, from: publicKey, to: known.text, re: nonce, data: null, ...more };
        // An answer goes to who asked, whatever the question names.
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
