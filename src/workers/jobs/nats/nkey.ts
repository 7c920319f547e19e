import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { Authenticator } from "@nats-io/transport-node";

/** A key pair with which a user of the server proves its identity. */
export interface Nkey {
  publicKey: string;
  /** The secret. */
  seed: string;
}

// The library computes its keys in JavaScript, which blocks the event loop for a tenth of a second; Node's native keys do not.

export function createNkey(): Nkey {
  const { privateKey } = generateKeyPairSync("ed25519");
  const raw = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-KEY_BYTES);
  return nkeyOf(checkedText(Buffer.concat([USER_SEED, raw])));
}

/** Throws if the text is not a seed. */
export function nkeyOf(seed: string): Nkey {
  const der = createPublicKey(signingKeyOf(seed)).export({ format: "der", type: "spki" });
  return { publicKey: checkedText(Buffer.concat([USER, der.subarray(-KEY_BYTES)])), seed };
}

/** Whether the text is a user's public key. */
export function isUserKey(text: string): boolean {
  return keyIn(text, USER) !== undefined;
}

/** Proves this user's identity by signing the nonce that the server sends. */
export function authenticatorOf(seed: string): Authenticator {
  const { publicKey } = nkeyOf(seed);
  const key = signingKeyOf(seed);
  return (nonce) => ({ nkey: publicKey, sig: nonce ? sign(null, Buffer.from(nonce), key).toString("base64") : "" });
}

/** The DER prefix of an Ed25519 key; the 32 bytes of the key follow. */
const PRIVATE_DER = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_DER = Buffer.from("302a300506032b6570032100", "hex");
const KEY_BYTES = 32;
/** The prefixes of a user's public key and seed: in base32 they read U and SU. */
const USER = Buffer.from([20 << 3]);
const USER_SEED = Buffer.from([(18 << 3) | (USER[0]! >> 5), (USER[0]! & 31) << 3]);

/** Throws if the text is not a seed. */
export function signingKeyOf(seed: string): KeyObject {
  const raw = keyIn(seed, USER_SEED);
  if (!raw) throw new Error("this is no seed of a user's nkey");
  return createPrivateKey({ key: Buffer.concat([PRIVATE_DER, raw]), format: "der", type: "pkcs8" });
}

/** Throws if the text is not a user's public key. */
export function verifyingKeyOf(publicKey: string): KeyObject {
  const raw = keyIn(publicKey, USER);
  if (!raw) throw new Error("this is no public key of a user's nkey");
  return createPublicKey({ key: Buffer.concat([PUBLIC_DER, raw]), format: "der", type: "spki" });
}

/** The 32 key bytes of a text with this prefix and a correct checksum. */
function keyIn(text: string, prefix: Buffer): Buffer | undefined {
  const length = prefix.length + KEY_BYTES;
  if (text.length !== Math.ceil(((length + 2) * 8) / 5) || !/^[A-Z2-7]+$/.test(text)) return undefined;
  const bytes = fromBase32(text).subarray(0, length);
  if (!bytes.subarray(0, prefix.length).equals(prefix) || checkedText(bytes) !== text) return undefined;
  return bytes.subarray(prefix.length);
}

/** Encodes the bytes with their checksum as base32. */
function checkedText(bytes: Buffer): string {
  const sum = Buffer.alloc(2);
  sum.writeUInt16LE(checksum(bytes));
  return toBase32(Buffer.concat([bytes, sum]));
}

/** CRC-16/XMODEM. */
function checksum(bytes: Buffer): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) sum = ((sum << 1) ^ (sum & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return sum;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function toBase32(bytes: Buffer): string {
  let [text, value, bits] = ["", 0, 0];
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += LETTERS[(value >> (bits - 5)) & 31];
  }
  return bits > 0 ? text + LETTERS[(value << (5 - bits)) & 31] : text;
}

function fromBase32(text: string): Buffer {
  const bytes: number[] = [];
  let [value, bits] = [0, 0];
  for (const letter of text) {
    value = ((value << 5) | LETTERS.indexOf(letter)) & 0xffff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  return Buffer.from(bytes);
}
