import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP, SocketAddress } from "node:net";
import { bareField, bits, field, integer, objectId, octets, sequence, set, time, utf8, yes } from "./der.ts";

/** A certificate and its private key, both as PEM text. */
export interface Identity {
  certificate: string;
  key: string;
}

const COMMON_NAME = "2.5.4.3";
const ECDSA_SHA256 = sequence(objectId("1.2.840.10045.4.3.2"));
const BASIC_CONSTRAINTS = "2.5.29.19";
const KEY_USAGE = "2.5.29.15";
const EXTENDED_USAGE = "2.5.29.37";
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const OTHER_NAMES = "2.5.29.17";
const SUBJECT_KEY = "2.5.29.14";
const AUTHORITY_KEY = "2.5.29.35";

const AUTHORITY_DAYS = 3_650;
/** The longest that every TLS library accepts. */
const SERVER_DAYS = 825;
const DAY_MS = 86_400_000;
/** Certificates are valid from a day earlier, because hosts' clocks differ. */
const EARLIER_MS = DAY_MS;

/** A certificate authority that signs this cluster's server and nothing else. */
export function createAuthority(now = new Date()): Identity {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const name = `IO cluster ${randomBytes(4).toString("hex")}`;
  const extensions = [
    extension(BASIC_CONSTRAINTS, sequence(yes(), integer(Buffer.from([0]))), { critical: true }),
    // keyCertSign only.
    extension(KEY_USAGE, bits(Buffer.from([0x04]), 2), { critical: true }),
    extension(SUBJECT_KEY, octets(keyId(publicKey))),
  ];
  const certificate = certify({
    subject: name,
    issuer: name,
    publicKey,
    signer: privateKey,
    extensions,
    now,
    days: AUTHORITY_DAYS,
  });
  return { certificate, key: pem(privateKey) };
}

/** Signs a certificate for a server with these names and addresses. */
export function signServer(authority: Identity, names: readonly string[], now = new Date()): Identity {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const signer = createPrivateKey(authority.key);
  const extensions = [
    extension(BASIC_CONSTRAINTS, sequence(), { critical: true }),
    // digitalSignature only, for handshakes.
    extension(KEY_USAGE, bits(Buffer.from([0x80]), 7), { critical: true }),
    extension(EXTENDED_USAGE, sequence(objectId(SERVER_AUTH))),
    extension(OTHER_NAMES, sequence(...names.map(alternative))),
    extension(SUBJECT_KEY, octets(keyId(publicKey))),
    extension(AUTHORITY_KEY, sequence(bareField(0, keyId(createPublicKey(signer))))),
  ];
  const issuer = new X509Certificate(authority.certificate).subject.replace(/^CN=/, "");
  const subject = "IO cluster server";
  return {
    certificate: certify({ subject, issuer, publicKey, signer, extensions, now, days: SERVER_DAYS }),
    key: pem(privateKey),
  };
}

/** Identifies an authority: the SHA-256 of its certificate, safe in a URL. */
export function fingerprintOf(certificate: string | Buffer): string {
  return Buffer.from(new X509Certificate(certificate).fingerprint256.replaceAll(":", ""), "hex").toString("base64url");
}

/** Whether a server's certificate is still usable: signed by this authority, for all of these names, for another month. */
export function isStillGood({ certificate }: Identity, authority: Identity, names: readonly string[], now = new Date()): boolean {
  const server = new X509Certificate(certificate);
  if (!server.verify(createPublicKey(authority.certificate))) return false;
  if (Date.parse(server.validTo) < now.getTime() + 30 * DAY_MS) return false;
  return names.every((name) => (isIP(name) ? server.checkIP(name) : server.checkHost(name)) !== undefined);
}

interface Certify {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signer: KeyObject;
  extensions: Buffer[];
  now: Date;
  days: number;
}

function certify({ subject, issuer, publicKey, signer, extensions, now, days }: Certify): string {
  const from = new Date(now.getTime() - EARLIER_MS);
  const body = sequence(
    field(0, integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    ECDSA_SHA256,
    nameOf(issuer),
    sequence(time(from), time(new Date(from.getTime() + days * DAY_MS))),
    nameOf(subject),
    spki(publicKey),
    field(3, sequence(...extensions)),
  );
  const signed = sequence(body, ECDSA_SHA256, bits(sign("sha256", body, signer)));
  return new X509Certificate(signed).toString();
}

/** The key identifier by which a certificate names its signer. */
const keyId = (key: KeyObject): Buffer => createHash("sha256").update(spki(key)).digest().subarray(0, 20);

const spki = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });

const nameOf = (text: string): Buffer => sequence(set(sequence(objectId(COMMON_NAME), utf8(text))));

function extension(id: string, value: Buffer, { critical = false } = {}): Buffer {
  return sequence(objectId(id), ...(critical ? [yes()] : []), octets(value));
}

function alternative(name: string): Buffer {
  return isIP(name) ? bareField(7, addressBytes(name)) : bareField(2, Buffer.from(name, "ascii"));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = new SocketAddress({ address, family: "ipv6" }).address.split("::");
  const words = (text: string | undefined) => (text ? text.split(":") : []);
  const before = words(head);
  const after = words(tail);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return Buffer.from([...before, ...zeros, ...after].map((word) => word.padStart(4, "0")).join(""), "hex");
}

const pem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();
