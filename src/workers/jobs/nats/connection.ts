import { setTimeout as sleep } from "node:timers/promises";
import { connect, errors, type NatsConnection } from "@nats-io/transport-node";
import { z } from "zod";
import { authenticatorOf } from "./nkey.ts";

/** How the daemon or a worker reaches the server. */
export const ClusterAccess = z.object({
  servers: z.array(z.string()).min(1),
  nkeySeed: z.string(),
  /** The authority that must have signed the server's certificate, as PEM text; by default the system's authorities. */
  tls: z.object({ ca: z.string() }).optional(),
  /** The worker's name, or "daemon". */
  name: z.string(),
});
export type ClusterAccess = z.infer<typeof ClusterAccess>;

/** Answers to a user's questions arrive below this subject, which only that user may read. */
export const inboxOf = (name: string): string => `_INBOX_${name}`;

export interface ConnectOptions {
  /** Whether to reconnect after losing the connection. */
  reconnect?: boolean;
  /** Keeps trying when the server refuses the key, because the server may be about to learn it. */
  patient?: boolean;
  timeoutMs?: number;
}

/** Connects, or rejects if that is impossible now. */
export function connectTo(
  { servers, nkeySeed, tls, name }: ClusterAccess,
  { reconnect = true, patient = false, timeoutMs = 5_000 }: ConnectOptions = {},
): Promise<NatsConnection> {
  return connect({
    servers,
    name,
    authenticator: authenticatorOf(nkeySeed),
    inboxPrefix: inboxOf(name),
    reconnect,
    maxReconnectAttempts: reconnect ? -1 : 0,
    reconnectTimeWait: 250,
    reconnectJitter: 100,
    reconnectJitterTLS: 250,
    pingInterval: 5_000,
    maxPingOut: 2,
    timeout: timeoutMs,
    ignoreAuthErrorAbort: patient,
    ...(tls && { tls: { ca: tls.ca } }),
  });
}

const TRY_MS = 2_000;
const PAUSE_MS = 50;

/**
 * Opens one connection that does not reconnect. The server never answers a handshake that arrives while it reloads its users, so
 * a silent server is tried again; with `untilKnown`, so is one that refuses the key.
 */
export async function connectOnce(access: ClusterAccess, withinMs: number, { untilKnown = false } = {}): Promise<NatsConnection> {
  const until = performance.now() + withinMs;
  for (;;) {
    try {
      return await connectTo(access, { reconnect: false, timeoutMs: Math.min(TRY_MS, withinMs) });
    } catch (error) {
      if (performance.now() > until || !(untilKnown || error instanceof errors.TimeoutError)) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** Whether the server rejected the key. */
export function isRefusal(error: unknown): boolean {
  return error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError;
}

/** The parsed message; undefined, which every schema rejects, if it is not JSON. */
export function jsonOf(message: { json<T>(): T }): unknown {
  try {
    return message.json();
  } catch {
    return undefined;
  }
}
