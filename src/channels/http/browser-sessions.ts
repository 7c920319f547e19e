import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** How long a browser that was handed only the cookie may fetch the key that belongs to it. */
const CLAIM_MS = 60_000;
const MOST_CLAIMS = 100;

/** What a browser is given when it signs in. */
export interface BrowserSession {
  /** Kept in a cookie. Browsers send it to every port of this host. */
  cookie: string;
  /** Kept in the page's own storage, which no page of another port can read, and sent as a header. */
  key: string;
}

/**
 * Sessions of browsers, none of which is stored: cookie and key are made of a random name and the token, so that they outlive
 * a restart and end when the token changes. Neither is any use without the other.
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
    /** A browser's own page keeps the key itself; where a program signs in for it, its page may claim the key later. */
    open({ claimable }: { claimable: boolean }): BrowserSession {
      const name = randomBytes(18).toString("base64url");
      sweep();
      if (claimable) claims.set(name, now() + CLAIM_MS);
      return { cookie: `${name}.${sign("cookie", name)}`, key: sign("key", name) };
    },
    /** Whether this is a cookie of ours. It says who asks, and proves nothing. */
    isKnown: (cookie: string | undefined): boolean => nameIn(cookie) !== undefined,
    isOpen(cookie: string | undefined, key: string | undefined): boolean {
      const name = nameIn(cookie);
      if (name === undefined || key === undefined || !same(key, sign("key", name))) return false;
      claims.delete(name);
      return true;
    },
    /**
     * The key to a cookie that was just given out: within a minute, and until it was used for the first time. An answer that
     * was handed out may not have arrived: somebody reloads the page in that moment.
     */
    claim(cookie: string | undefined): string | undefined {
      const name = nameIn(cookie);
      sweep();
      return name !== undefined && claims.has(name) ? sign("key", name) : undefined;
    },
  };
}

/** Compares without telling, by the time it takes, how much was right. */
export function same(a: string, b: string): boolean {
  const digest = (text: string) => createHmac("sha256", "io").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
