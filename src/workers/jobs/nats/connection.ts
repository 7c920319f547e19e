import { setTimeout as sleep } from "node:timers/promises";
import { connect, errors, type NatsConnection } from "@nats-io/transport-node";
import { z } from "zod";
import { authenticatorOf } from "./nkey.ts";

/** How the daemon or a worker reaches the server. */
export const ClusterAccess = z.object({
  servers: z.array(z.string()).min(1),
  nkeySeed: z.string(),
  /** The authority that the servers must be signed by, as PEM text; without it the system's hold. */
  tls: z.object({ ca: z.string() }).optional(),
  /** The worker's name, or "daemon". */
  name: z.string(),
});
export type ClusterAccess = z.infer<typeof ClusterAccess>;

/** Below this a user hears the answers to its own questions, and nobody else's. */
export const inboxOf = (name: string): string => `_INBOX_${name}`;

export interface ConnectOptions {
  /** Whether a connection that was lost is made again. */
  reconnect?: boolean;
  /** Goes on trying where the server refuses the key: it may be about to learn of it. */
  patient?: boolean;
  timeoutMs?: number;
}

/** Connects, or rejects where that is not possible now. */
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
 * One connection that is not made again when it is lost. A handshake that falls into the moment in which the server reads
 * its users anew is never answered, so a silent server is asked again; one that is about to learn of the key, also when it refuses.
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

/** Whether the server turned the key away. */
export function isRefusal(error: unknown): boolean {
  return error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError;
}

/** What a message says; undefined, which every schema refuses, where it is no JSON. */
export function jsonOf(message: { json<T>(): T }): unknown {
  try {
    return message.json();
  } catch {
    return undefined;
  }
}
