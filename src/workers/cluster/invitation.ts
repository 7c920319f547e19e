import { createHmac, randomInt, timingSafeEqual } from "node:crypto";
import { usageError } from "../../lib/errors.ts";

/** What `io worker invite` prints and `io worker join` takes, apart from the code. */
export interface Invitation {
  /** `tls` or `nats`. */
  scheme: string;
  /** Host and port. */
  server: string;
  /** The seed of a key that may ask for admission and do nothing else. */
  seed: string;
  /** The fingerprint of the server's authority; without it the system's authorities apply. */
  fingerprint?: string;
}

/** Letters and digits that nobody confuses. */
const LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const CODE_LENGTH = 12;

/** 60 bits, in groups that can be read aloud. */
export function newCode(): string {
  const letters = Array.from({ length: CODE_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("");
  return letters.replace(/(.{4})(?=.)/g, "$1-");
}

export function inviteUrl({ scheme, server, seed, fingerprint }: Invitation): string {
  return [`${scheme}://${server}`, seed, ...(fingerprint === undefined ? [] : [fingerprint])].join("/");
}

const URL_FORM = /^(nats|tls):\/\/([A-Za-z0-9.:[\]-]{1,260}:\d{1,5})\/(SU[A-Z2-7]{56})(?:\/([A-Za-z0-9_-]{43}))?\/?$/;

export function readInviteUrl(url: string): Invitation {
  const [, scheme, server, seed, fingerprint] = URL_FORM.exec(url.trim()) ?? [];
  if (!scheme || !server || !seed)
    throw usageError(
      'This is no invitation. Copy the whole url that "io worker invite" printed on the other host: tls://host:port/…/…',
    );
  return { scheme, server, seed, ...(fingerprint && { fingerprint }) };
}

/** Proves knowledge of the code without revealing it. */
export function proofOf(code: string, role: "worker" | "daemon", text: string): string {
  return createHmac("sha256", plainCode(code)).update(`${role}\n${text}`).digest("base64url");
}

/** Constant time, whatever is wrong with the proof. */
export function isProof(given: string, code: string, role: "worker" | "daemon", text: string): boolean {
  const [one, other] = [given, proofOf(code, role, text)].map((each) => createHmac("sha256", "").update(each).digest());
  return timingSafeEqual(one!, other!);
}

/** Normalizes the code, however it was typed. */
const plainCode = (code: string): string => code.toUpperCase().replace(/[^A-Z0-9]/g, "");
