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
  /** Where a browser comes back to. */
  callbackUrl: () => string;
  /** Remembers a secret, so that nobody is told it. */
  hide: (secret: string | undefined) => void;
  now?: () => number;
}

/** What is kept of a login: who IO is to the server, and its tokens. */
interface Kept {
  client?: StoredOAuthClientInformation | undefined;
  tokens?: StoredOAuthTokens | undefined;
  discovery?: OAuthDiscoveryState | undefined;
  /** A registration counts for one address to come back to. */
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

/** The logins of servers that ask for one. */
export function createLogins({ state, callbackUrl, hide, now = Date.now }: LoginsDeps) {
  /** By the word that comes back with the browser; each is good once. */
  const attempts = new Map<string, Attempt>();
  const read = (entry: Entry): Kept => JSON.parse(state.get(keyOf(entry)) ?? "{}") as Kept;
  const keep = (entry: Entry, changes: Kept) => state.set(keyOf(entry), JSON.stringify({ ...read(entry), ...changes }));

  /** Outside of an attempt nobody is sent anywhere: a login that does not hold any more is asked for anew by a person. */
  function providerFor(entry: Entry, word?: string): OAuthClientProvider {
    const attempt = () => (word === undefined ? undefined : attempts.get(word));
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
      state: () => word ?? "",
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
        keep(entry, { tokens });
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
    /** What gives a connection its token; undefined for a server that nobody has logged in to. */
    providerOf: (entry: Entry) => (read(entry).tokens === undefined ? undefined : providerFor(entry)),
    /** Asks the server where a person logs in. The answer is waited for ten minutes. */
    async begin(entry: Entry, url: string): Promise<string> {
      for (const [word, { until }] of attempts) if (until < now()) attempts.delete(word);
      const before = read(entry);
      state.set(
        keyOf(entry),
        JSON.stringify(before.redirectUrl === callbackUrl() ? { client: before.client, redirectUrl: before.redirectUrl } : {}),
      );
      const word = randomBytes(24).toString("base64url");
      const attempt: Attempt = { entry, verifier: "", until: now() + PATIENCE_MS };
      attempts.set(word, attempt);
      const { Client, StreamableHTTPClientTransport: Transport } = await import("@modelcontextprotocol/client");
      attempt.transport = new Transport(new URL(url), { authProvider: providerFor(entry, word), fetch: boundedFetch });
      const client = new Client({ name: "io", version: "1" });
      try {
        await client.connect(attempt.transport, { timeout: 20_000 });
      } catch (error) {
        if (attempt.url !== undefined && isWebPage(attempt.url)) return attempt.url.href;
        attempts.delete(word);
        if (attempt.url !== undefined)
          throw unavailable(
            `The login was not begun: this server wants it at ${quoted(attempt.url.href.split("?", 1)[0]!, 200)}, which is no web page (http or https).`,
          );
        throw unavailable(`The login could not be begun: ${oneLine(messageOf(error), 400)}`);
      }
      attempts.delete(word);
      await client.close();
      throw conflict("This server needs no login.");
    },
    /** Ends an attempt with what the browser brought back; the answer is whose it was. */
    async finish(given: URLSearchParams): Promise<Entry> {
      const word = given.get("state") ?? "";
      const attempt = attempts.get(word);
      if (!attempt?.transport || attempt.until < now())
        throw new UserError("Nobody waits for this login any more. Begin again: io mcp login <name>");
      try {
        await attempt.transport.finishAuth(given);
      } catch (error) {
        throw new UserError(`The login failed: ${oneLine(messageOf(error), 400)}`);
      } finally {
        attempts.delete(word);
      }
      return attempt.entry;
    },
    forget: (entry: Entry) => state.delete(keyOf(entry)),
  };
}
export type Logins = ReturnType<typeof createLogins>;

/** A server names the address; a browser must not be led to a file or to another program by it. */
const isWebPage = ({ protocol, username, password }: URL) => /^https?:$/.test(protocol) && username === "" && password === "";

const keyOf = ({ key, hash }: Entry) => `mcp.oauth:${key}:${hash}`;
