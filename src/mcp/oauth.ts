import { randomBytes } from "node:crypto";
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { conflict, messageOf, UserError, unavailable } from "../lib/errors.ts";
import { oneLine, quoted } from "../lib/quoted.ts";
import type { State } from "../store/state.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import type { Entry } from "./entries.ts";

export interface LoginsDeps {
  state: State;
  /** Where the browser returns after the login. */
  callbackUrl: () => string;
  /** Redacts a secret from then on. */
  hide: (secret: string | undefined) => void;
  now?: () => number;
}

/** What is stored of a login: IO's registration with the server, and its tokens. */
interface StoredLogin {
  client?: StoredOAuthClientInformation | undefined;
  tokens?: StoredOAuthTokens | undefined;
  discovery?: OAuthDiscoveryState | undefined;
  /** Stays when the tokens have expired. */
  wasLoggedIn?: boolean | undefined;
  /** The redirect URL that the registration is valid for. */
  redirectUrl?: string;
}

/** A login that waits for a person in a browser. */
interface Attempt {
  entry: Entry;
  verifier: string;
  url?: URL;
  transport?: StreamableHTTPClientTransport;
  until: number;
}

const PATIENCE_MS = 600_000;

/** The OAuth logins of servers. */
export function createLogins({ state, callbackUrl, hide, now = Date.now }: LoginsDeps) {
  /** By the `state` that the browser brings back; each can be used once. */
  const attempts = new Map<string, Attempt>();
  const read = (entry: Entry): StoredLogin => JSON.parse(state.get(keyOf(entry)) ?? "{}") as StoredLogin;
  const keep = (entry: Entry, changes: StoredLogin) => state.set(keyOf(entry), JSON.stringify({ ...read(entry), ...changes }));

  /** Opens no login outside of an attempt: only a person starts a new one when the old one has expired. */
  function providerFor(entry: Entry, nonce?: string): OAuthClientProvider {
    const attempt = () => (nonce === undefined ? undefined : attempts.get(nonce));
    const { clientId, scopes } = entry.config?.oauth ?? {};
    return {
      get redirectUrl() {
        return callbackUrl();
      },
      get clientMetadata() {
        return {
          ...{ client_name: "IO", redirect_uris: [callbackUrl()], response_types: ["code"], token_endpoint_auth_method: "none" },
          grant_types: ["authorization_code", "refresh_token"],
          ...(scopes && { scope: scopes.join(" ") }),
        };
      },
      state: () => nonce ?? "",
      clientInformation: () => (clientId === undefined ? read(entry).client : { client_id: clientId }),
      saveClientInformation: (client) => keep(entry, { client, redirectUrl: callbackUrl() }),
      tokens() {
        const { tokens } = read(entry);
        hide(tokens?.access_token);
        hide(tokens?.refresh_token);
        return tokens;
      },
      saveTokens(tokens) {
        hide(tokens.access_token);
        hide(tokens.refresh_token);
        keep(entry, { tokens, wasLoggedIn: true });
      },
      redirectToAuthorization(url) {
        const waiting = attempt();
        if (waiting) waiting.url = url;
      },
      saveCodeVerifier(verifier) {
        const waiting = attempt();
        if (waiting) waiting.verifier = verifier;
      },
      codeVerifier: () => attempt()?.verifier ?? "",
      saveDiscoveryState: (discovery) => keep(entry, { discovery }),
      discoveryState: () => read(entry).discovery,
      invalidateCredentials(scope) {
        if (scope === "all" || scope === "tokens") keep(entry, { tokens: undefined });
        if (scope === "all" || scope === "client") keep(entry, { client: undefined });
        if (scope === "all" || scope === "discovery") keep(entry, { discovery: undefined });
      },
    };
  }

  return {
    /** Gives a connection its token; undefined for a server without a login. */
    providerOf: (entry: Entry) => (read(entry).tokens === undefined ? undefined : providerFor(entry)),
    /** Whether somebody has logged in, and not out again; the login may have expired. */
    wasLoggedIn: (entry: Entry): boolean => read(entry).wasLoggedIn === true,
    /** Asks the server where a person logs in. The attempt is valid for ten minutes. */
    async begin(entry: Entry, url: string): Promise<string> {
      for (const [nonce, { until }] of attempts) if (until < now()) attempts.delete(nonce);
      const { client: registered, redirectUrl, wasLoggedIn } = read(entry);
      const registration = redirectUrl === callbackUrl() ? { client: registered, redirectUrl } : {};
      state.set(keyOf(entry), JSON.stringify({ ...registration, wasLoggedIn } satisfies StoredLogin));
      const nonce = randomBytes(24).toString("base64url");
      const attempt: Attempt = { entry, verifier: "", until: now() + PATIENCE_MS };
      attempts.set(nonce, attempt);
      const { Client, StreamableHTTPClientTransport: Transport } = await import("@modelcontextprotocol/client");
      attempt.transport = new Transport(new URL(url), { authProvider: providerFor(entry, nonce), fetch: boundedFetch });
      const client = new Client({ name: "io", version: "1" });
      try {
        await client.connect(attempt.transport, { timeout: 20_000 });
      } catch (error) {
        if (attempt.url !== undefined && isWebPage(attempt.url)) return attempt.url.href;
        attempts.delete(nonce);
        if (attempt.url !== undefined)
          throw unavailable(
            `The login was not begun: this server wants it at ${quoted(attempt.url.href.split("?", 1)[0]!, 200)}, which is no web page (http or https).`,
          );
        throw unavailable(`The login could not be begun: ${oneLine(messageOf(error), 400)}`);
      }
      attempts.delete(nonce);
      await client.close();
      throw conflict("This server needs no login.");
    },
    /** Finishes a login with what the browser brought back; returns the server's entry. */
    async finish(given: URLSearchParams): Promise<Entry> {
      const nonce = given.get("state") ?? "";
      const attempt = attempts.get(nonce);
      if (!attempt?.transport || attempt.until < now())
        throw new UserError("Nobody waits for this login any more. Begin again: io mcp login <name>");
      try {
        await attempt.transport.finishAuth(given);
      } catch (error) {
        throw new UserError(`The login failed: ${oneLine(messageOf(error), 400)}`);
      } finally {
        attempts.delete(nonce);
      }
      return attempt.entry;
    },
    forget: (entry: Entry) => state.delete(keyOf(entry)),
  };
}
export type Logins = ReturnType<typeof createLogins>;

/** The server chooses the address, which must not lead the browser to a file or another program. */
const isWebPage = ({ protocol, username, password }: URL) => /^https?:$/.test(protocol) && username === "" && password === "";

const keyOf = ({ key, hash }: Entry) => `mcp.oauth:${key}:${hash}`;
