import { createHash, timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { EditChannel } from "../../protocol/pages.ts";
import { fail } from "./errors.ts";

export interface GuardDeps {
  token: string;
  /** Whether a connection was made by a command that stands behind the wall. */
  isBehindWall?: (socket: Socket) => boolean;
  /** The port that the server has taken. */
  port: () => number;
  /** The address the server is bound to. */
  host: string;
  allowedHosts: () => string[];
}

/** Lets in only requests that name this server, come from no other site, and bring the token. */
export function createGuard({ token, host, port, allowedHosts, isBehindWall = () => false }: GuardDeps) {
  const cookieValue = createHash("sha256").update(`io cookie ${token}`).digest("base64url");

  // Browsers keep one jar for all ports of a host: another program's cookie must not be taken for ours, nor ours for its.
  const cookieName = () => `io_session_${port()}`;
  const judged = new WeakMap<Socket, boolean>();
  /** A connection is judged once, when it first asks for something. */
  const isFromBehind = (socket: Socket | undefined): boolean => {
    if (socket === undefined) return false;
    const known = judged.get(socket) ?? isBehindWall(socket);
    judged.set(socket, known);
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

  const address: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = async (context, next) => {
    if (isFromBehind(context.env?.incoming?.socket))
      return fail(context, 403, "Commands that IO runs may not use its API. Use IO's tools, or ask the user.");
    const hostHeader = context.req.header("host");
    if (!isOurHost(hostHeader))
      return fail(
        context,
        403,
        "This address is not served here. Use the bound host or a loopback name, or list the name under allowedHosts in config.json.",
      );
    if (!isOurOrigin(context.req.header("origin"), hostHeader))
      return fail(context, 403, "Requests from other sites are refused.");
    await next();
  };

  const mayPass = (context: Context): boolean => {
    const [scheme, bearer] = (context.req.header("authorization") ?? "").split(" ", 2);
    if (scheme?.toLowerCase() === "bearer" && bearer && same(bearer, token)) return true;
    const cookie = getCookie(context, cookieName());
    return cookie !== undefined && same(cookie, cookieValue);
  };
  const auth: MiddlewareHandler = async (context, next) => {
    if (!mayPass(context)) return fail(context, 401, "A token is needed: Authorization: Bearer <the text of IO_HOME/token>.");
    await next();
  };

  /** Gives a browser the cookie, which scripts cannot read. */
  const admit = (context: Context): void =>
    setCookie(context, cookieName(), cookieValue, { httpOnly: true, sameSite: "Strict", path: "/", maxAge: 60 * 60 * 24 * 30 });
  return {
    address,
    auth,
    mayPass,
    admit,
    /** Trades the token for the cookie. */
    login(context: Context, offered: string): boolean {
      if (!same(offered, token)) return false;
      admit(context);
      return true;
    },
    /** Which of the ways in somebody took who may pass: a browser has the cookie, our own commands name themselves. */
    cameBy(context: Context): EditChannel {
      if (context.req.header("authorization") === undefined) return "web";
      return context.req.header("io-client") === "terminal" ? "terminal" : "api";
    },
    dismiss: (context: Context): void => void deleteCookie(context, cookieName(), { path: "/" }),
  };
}
export type Guard = ReturnType<typeof createGuard>;

/** Compares without telling, by the time it takes, how much was right. */
function same(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function hostName(header: string | undefined): string | undefined {
  if (!header || !URL.canParse(`http://${header}`)) return undefined;
  return new URL(`http://${header}`).hostname.replace(/^\[|\]$/g, "");
}

export function isLoopbackName(name: string): boolean {
  return name === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}
