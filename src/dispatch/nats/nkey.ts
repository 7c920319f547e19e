import { createUser, fromPublic, fromSeed } from "@nats-io/nkeys";

/** A key by which a user of the server proves who it is. */
export interface Nkey {
  publicKey: string;
  /** The secret. */
  seed: string;
}

export function createNkey(): Nkey {
  const pair = createUser();
  return { publicKey: pair.getPublicKey(), seed: new TextDecoder().decode(pair.getSeed()) };
}

/** Throws where the text is no seed. */
export function nkeyOf(seed: string): Nkey {
  return { publicKey: fromSeed(new TextEncoder().encode(seed)).getPublicKey(), seed };
}

/** Whether this is the public key of a user. */
export function isUserKey(text: string): boolean {
  try {
    return text.startsWith("U") && fromPublic(text).getPublicKey() === text;
  } catch {
    // Not a key at all.
    return false;
  }
}
