import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** How long a browser that got only the cookie may fetch the key that belongs to it. */
const CLAIM_MS = 60_000;
const MOST_CLAIMS = 100;

/** What a browser gets when it signs in. */
export interface BrowserSession {
  /** Stored as a cookie, which browsers send to every port of this host. */
  cookie: string;
  /** Stored by the page itself, where no page of another port can read it, and sent as a header. */
  key: string;
}

/**
 * Stateless browser sessions: cookie and key are derived from a random name and the token, so they survive a restart and end when
 * the token changes. Neither works without the other.
 */
export function createBrowserSessions(token: string, now: () => number = Date.now) {
  const claims = new Map<string, number>();
  const sign = (purpose: string, name: string) => createHmac("sha256", token).update(`io ${purpose} ${name}`).digest("base64url");
  const nameIn = (cookie: string | undefined): string | undefined => {
    const [name = "", proof = ""] = (cookie ?? "").split(".", 2);
    return name !== "" && same(proof, sign("cookie", name)) ? name : undefined;
  };
  const sweep = () => {
    for (const [name, end] of claims) if (end < now()) claims.delete(name);
    for (const name of [...claims.keys()].slice(0, Math.max(0, claims.size - MOST_CLAIMS + 1))) claims.delete(name);
  };
  return {
    /** IO's own page keeps the key itself; if a program signs in for the browser, the page may claim the key later. */
    open({ claimable }: { claimable: boolean }): BrowserSession {
      const name = randomBytes(18).toString("base64url");
      sweep();
      if (claimable) claims.set(name, now() + CLAIM_MS);
      return { cookie: `${name}.${sign("cookie", name)}`, key: sign("key", name) };
    },
    /** Whether the cookie is one of ours. It identifies a browser but proves nothing. */
    isKnown: (cookie: string | undefined): boolean => nameIn(cookie) !== undefined,
    isOpen(cookie: string | undefined, key: string | undefined): boolean {
      const name = nameIn(cookie);
      if (name === undefined || key === undefined || !same(key, sign("key", name))) return false;
      claims.delete(name);
      return true;
    },
    /**
     * The key for a new cookie, within a minute and until its first use. A repeated claim is fine: the response may get lost when
     * the page is reloaded.
     */
    claim(cookie: string | undefined): string | undefined {
      const name = nameIn(cookie);
      sweep();
      return name !== undefined && claims.has(name) ? sign("key", name) : undefined;
    },
  };
}

/** Compares in constant time. */
export function same(a: string, b: string): boolean {
  const digest = (text: string) => createHmac("sha256", "io").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
