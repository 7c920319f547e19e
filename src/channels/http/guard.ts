import type { Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler, Next } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { ApiChannel } from "../../protocol/pages.ts";
import type { TokenScope } from "../../protocol/tokens.ts";
import { createBrowserSessions, same } from "./browser-sessions.ts";
import { fail, isOpenAiPath } from "./errors.ts";

export interface GuardDeps {
  token: string;
  /** Whether a sandboxed command made the connection. */
  isBehindWall?: (socket: Socket) => Promise<boolean>;
  /** The port that the server listens on. */
  port: () => number;
  /** The address that the server is bound to. */
  host: string;
  allowedHosts: () => string[];
  /** The scopes of a program's token; undefined if it never existed or was revoked. */
  scopesOf?: (token: string) => readonly TokenScope[] | undefined;
  /** Called when a token is used outside of its scopes. */
  onTokenMisuse?: (token: string, path: string) => void;
  /** Browser origins that may use `/v1`. */
  openaiOrigins?: () => string[];
}

/** The header with which the page sends the key of its cookie. */
const KEY_HEADER = "io-key";

/** Admits only requests that name this server's host, come from no other site, and bring a valid token. */
export function createGuard(deps: GuardDeps) {
  const { token, host, port, allowedHosts, isBehindWall = async () => false } = deps;
  const { scopesOf = () => undefined, onTokenMisuse = () => undefined, openaiOrigins = () => [] } = deps;
  const sessions = createBrowserSessions(token);
  // Browsers share cookies between all ports of a host, so the port keeps cookies of different programs apart.
  const cookieName = () => `io_session_${port()}`;
  const checked = new WeakMap<Socket, Promise<boolean>>();
  /** Checks a connection once, at its first request. */
  const isFromSandbox = async (socket: Socket | undefined): Promise<boolean> => {
    if (socket === undefined) return false;
    const known = checked.get(socket) ?? isBehindWall(socket);
    checked.set(socket, known);
    return known;
  };

  const isOurHost = (header: string | undefined): boolean => {
    const name = hostName(header);
    if (name === undefined) return false;
    return name === host || isLoopbackName(name) || allowedHosts().includes(name);
  };
  const isOurOrigin = (origin: string | undefined, hostHeader: string | undefined): boolean => {
    if (origin === undefined) return true;
    return URL.canParse(origin) && new URL(origin).host === hostHeader?.toLowerCase();
  };

  const isListed = (path: string, origin: string | undefined): boolean =>
    isOpenAiPath(path) && origin !== undefined && openaiOrigins().includes(origin);

  const address: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = async (context, next) => {
    if (await isFromSandbox(context.env?.incoming?.socket))
      return fail(context, 403, "Commands that IO runs may not use its API. Use IO's tools, or ask the user.");
    const hostHeader = context.req.header("host");
    if (!isOurHost(hostHeader))
      return fail(
        context,
        403,
        "This address is not served here. Use the bound host or a loopback name, or list the name under allowedHosts in config.json.",
      );
    const origin = context.req.header("origin");
    if (!isOurOrigin(origin, hostHeader) && !isListed(context.req.path, origin))
      return fail(context, 403, "Requests from other sites are refused.");
    await next();
  };

  const bearerOf = (context: Context): string | undefined => {
    const [scheme, bearer] = (context.req.header("authorization") ?? "").split(" ", 2);
    return scheme?.toLowerCase() === "bearer" && bearer ? bearer : undefined;
  };
  const mayPass = (context: Context): boolean => {
    const bearer = bearerOf(context);
    if (bearer !== undefined && same(bearer, token)) return true;
    return sessions.isOpen(getCookie(context, cookieName()), context.req.header(KEY_HEADER));
  };
  /** Admits IO's own token, and tokens of programs with this scope; without a scope, only IO's own. */
  const authFor =
    (scope: TokenScope | undefined, help: string): MiddlewareHandler =>
    async (context, next) => {
      if (mayPass(context)) return next();
      const bearer = bearerOf(context);
      const scopes = bearer === undefined ? undefined : scopesOf(bearer);
      if (scopes === undefined) {
        if (scope !== undefined) context.header("www-authenticate", "Bearer");
        return fail(context, 401, `A token is needed: ${help}`);
      }
      if (scope === undefined || !scopes.includes(scope)) {
        if (bearer !== undefined) onTokenMisuse(bearer, context.req.path);
        const remedy = scope === undefined ? "" : ` Make one for this: io token create <name> --for ${scope}.`;
        return fail(context, 403, `This token was made for ${scopes.join(" and ")} and opens nothing else.${remedy}`);
      }
      await next();
    };
  const auth = authFor(undefined, "Authorization: Bearer <the text of IO_HOME/token>.");

  const isOwnPage = (context: Context) => context.req.header("sec-fetch-site") === "same-origin";
  return {
    address,
    auth,
    authFor,
    /** Adds CORS headers for the listed origins, and answers preflight requests. */
    shareOpenAi: async (context: Context, next: Next): Promise<Response | undefined> => {
      const origin = context.req.header("origin");
      const shared = origin !== undefined && isListed(context.req.path, origin) ? sharedWith(origin) : {};
      if (context.req.method === "OPTIONS" && context.req.header("access-control-request-method") !== undefined) {
        const wanted = allowed(context.req.header("access-control-request-headers"));
        return new Response(null, { status: 204, headers: { ...shared, ...wanted } });
      }
      await next();
      for (const [name, value] of Object.entries<string>(shared)) context.header(name, value);
      return undefined;
    },
    mayPass,
    isToken: (offered: string): boolean => same(offered, token),
    /** Sets the cookie, which scripts cannot read, and returns the key for the page. */
    admit(context: Context): string {
      const { cookie, key } = sessions.open({ claimable: !isOwnPage(context) });
      setCookie(context, cookieName(), cookie, { httpOnly: true, sameSite: "Strict", path: "/", maxAge: 60 * 60 * 24 * 30 });
      return key;
    },
    /** Whether the browser has one of our cookies; that alone grants nothing. */
    isKnown: (context: Context): boolean => sessions.isKnown(getCookie(context, cookieName())),
    /** The key for a cookie that a program just obtained for this browser; only for our own page. */
    claim: (context: Context): string | undefined =>
      isOwnPage(context) ? sessions.claim(getCookie(context, cookieName())) : undefined,
    /** The channel of an admitted request: browsers use the cookie, our own commands name themselves. */
    channelOf(context: Context): ApiChannel {
      if (context.req.header("authorization") === undefined) return "web";
      const client = context.req.header("io-client");
      return client === "terminal" || client === "mcp" || client === "acp" ? client : "api";
    },
    dismiss: (context: Context): void => void deleteCookie(context, cookieName(), { path: "/" }),
  };
}
export type Guard = ReturnType<typeof createGuard>;

const sharedWith = (origin: string) => ({
  "access-control-allow-origin": origin,
  "access-control-expose-headers": "x-io-conversation, x-io-message",
  vary: "origin",
});
const allowed = (headers: string | undefined) => ({
  "access-control-allow-methods": "GET, POST",
  "access-control-max-age": "600",
  ...(headers !== undefined && { "access-control-allow-headers": headers }),
});

function hostName(header: string | undefined): string | undefined {
  if (!header || !URL.canParse(`http://${header}`)) return undefined;
  return new URL(`http://${header}`).hostname.replace(/^\[|\]$/g, "");
}

export function isLoopbackName(name: string): boolean {
  return name === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}
