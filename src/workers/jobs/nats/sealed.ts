import { type KeyObject, randomBytes, sign, verify } from "node:crypto";
import type { z } from "zod";

/**
 * A signed message: a marker byte, the signature, one line of JSON, and bytes that belong to it. The same nkeys authenticate to
 * the server, which chooses the text that they sign for that. Such text is always UTF-8, which never contains the marker byte, so
 * no server can obtain a signed message.
 */
const MARK = Buffer.from([0xff]);
const SIGNATURE_BYTES = 64;
const CONTEXT = Buffer.concat([MARK, Buffer.from("io sealed message\n")]);
const NEWLINE = 0x0a;

export const newNonce = (): string => randomBytes(16).toString("base64url");

export function seal(key: KeyObject, head: object, bytes: Uint8Array = new Uint8Array()): Uint8Array {
  const content = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), bytes]);
  return Buffer.concat([MARK, sign(null, Buffer.concat([CONTEXT, content]), key), content]);
}

export const isSealed = (message: Uint8Array): boolean => message[0] === MARK[0];

/** What a message claims to say; the signature is not verified. */
export function claimedHead(message: Uint8Array): unknown {
  const content = Buffer.from(message.subarray(1 + SIGNATURE_BYTES));
  try {
    return isSealed(message) ? JSON.parse(content.subarray(0, content.indexOf(NEWLINE)).toString("utf8")) : undefined;
  } catch {
    // Not JSON.
    return undefined;
  }
}

/** The content of a message, if this key signed it and it fits the schema. */
export function unseal<T>(key: KeyObject, schema: z.ZodType<T>, message: Uint8Array): { head: T; bytes: Uint8Array } | undefined {
  if (!isSealed(message) || message.length <= 1 + SIGNATURE_BYTES) return undefined;
  const [signature, content] = [message.subarray(1, 1 + SIGNATURE_BYTES), message.subarray(1 + SIGNATURE_BYTES)];
  if (!verify(null, Buffer.concat([CONTEXT, content]), key, signature)) return undefined;
  const end = content.indexOf(NEWLINE);
  try {
    const { data: head } = schema.safeParse(JSON.parse(Buffer.from(content.subarray(0, end)).toString("utf8")));
    return head === undefined ? undefined : { head, bytes: content.subarray(end + 1) };
  } catch {
    // Signed, but not JSON: treated like an unsigned message.
    return undefined;
  }
}
