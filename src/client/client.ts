import { readToken } from "../lib/api-token.ts";
import { readDaemonFile } from "../lib/daemon-file.ts";
import { ExitCode, messageOf, UserError } from "../lib/errors.ts";
import type { Paths } from "../lib/paths.ts";
import type { ApiError } from "../protocol/api.ts";
import { type Event, readEvent } from "../protocol/events.ts";
import type { Message, NewMessage } from "../protocol/messages.ts";
import { readEvents } from "./sse.ts";

/** The HTTP API as its clients on this machine use it. */
export interface Client {
  url: string;
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** News as it happens; reconnects with the last id it saw, until the signal ends it. */
  events(options: { conversation?: string; signal: AbortSignal; onOpen?: () => void }): AsyncGenerator<Event>;
  /** Says something and follows it to its end. */
  ask(message: NewMessage, options?: AskOptions): Promise<Message>;
}

export interface AskOptions {
  onId?: (id: string) => void;
  onDelta?: (text: string) => void;
  onTool?: (tool: string, state: string) => void;
  /** Ends the following, not the message. */
  signal?: AbortSignal;
}

/** A daemon that restarts is waited for this often and this long; one that stays away is reported. */
const PATIENCE = 40;
const AGAIN_MS = 300;

/** Finds the daemon by its `daemon.json` and nowhere else. */
export function connect(paths: Paths, env: NodeJS.ProcessEnv): Client {
  const daemon = readDaemonFile(paths.daemon);
  if (!daemon)
    throw new UserError(`No daemon runs on ${paths.home}. Start one with "io start".`, { exitCode: ExitCode.unreachable });
  const host = daemon.host.includes(":") ? `[${daemon.host}]` : daemon.host;
  const url = `http://${host}:${daemon.port}`;
  const token = env.IO_TOKEN || readToken(paths.token);
  const headers = { authorization: `Bearer ${token}` };

  async function call(path: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url + path, { ...init, headers: { ...headers, ...init.headers } });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new UserError(
        `The daemon at ${url} does not answer (${messageOf(error)}). See "io logs", or start it again with "io restart".`,
        {
          exitCode: ExitCode.unreachable,
          cause: error,
        },
      );
    }
  }

  const client: Client = {
    url,
    async request<T>(method: string, path: string, body?: unknown): Promise<T> {
      const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
      const response = await call(path, { method, ...json });
      const answer: unknown = await response.json().catch(() => undefined);
      if (!response.ok) throw refusal(response.status, answer as ApiError | undefined);
      return answer as T;
    },
    async *events({ conversation, signal, onOpen }) {
      let lastId: string | undefined;
      let failures = 0;
      while (!signal.aborted) {
        const query = conversation === undefined ? "" : `?conversation=${encodeURIComponent(conversation)}`;
        try {
          const response = await call(`/api/events${query}`, {
            signal,
            headers: lastId === undefined ? {} : { "last-event-id": lastId },
          });
          if (!response.ok || !response.body)
            throw new UserError(`The daemon answered ${response.status} to a request for events.`);
          onOpen?.();
          failures = 0;
          for await (const { id, event, data } of readEvents(response.body)) {
            lastId = id;
            const heard = readEvent({ id: Number(id), type: event, data: JSON.parse(data) });
            if (heard) yield heard;
          }
        } catch (error) {
          if (signal.aborted) return;
          failures += 1;
          if (lastId === undefined || failures > PATIENCE) throw error;
          await new Promise((again) => setTimeout(again, AGAIN_MS));
        }
      }
    },
    async ask(message, { onId, onDelta, onTool, signal } = {}) {
      const follow = new AbortController();
      const leave = () => follow.abort();
      signal?.addEventListener("abort", leave, { once: true });
      let opened: () => void = () => {};
      const listening = new Promise<void>((resolve) => {
        opened = resolve;
      });
      const heard: Event[] = [];
      let wake: () => void = () => {};
      let failed: { error: unknown } | undefined;
      const reading = (async () => {
        for await (const event of client.events({
          conversation: message.conversation ?? "main",
          signal: follow.signal,
          onOpen: () => opened(),
        })) {
          heard.push(event);
          wake();
        }
      })()
        .catch((error: unknown) => {
          failed = { error };
        })
        .finally(() => {
          opened();
          wake();
        });
      try {
        await listening;
        const { id } = await client.request<{ id: string }>("POST", "/api/messages", message);
        onId?.(id);
        const early = await client.request<Message>("GET", `/api/messages/${id}`);
        if (early.finishedAt !== null && heard.length === 0) return early;
        while (!follow.signal.aborted) {
          const event = heard.shift();
          if (!event && failed) throw failed.error;
          if (!event) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
            continue;
          }
          if (event.type === "message.delta" && event.data.id === id) onDelta?.(event.data.text);
          if (event.type === "message.tool" && event.data.id === id) onTool?.(event.data.tool, event.data.state);
          if (event.type === "message.finished" && event.data.id === id) return event.data;
        }
        throw new UserError("Interrupted. IO goes on with the message; its answer will be in the conversation.", {
          exitCode: ExitCode.interrupted,
        });
      } finally {
        signal?.removeEventListener("abort", leave);
        follow.abort();
        await reading;
      }
    },
  };
  return client;
}

/** The daemon's own words. A request that it cannot make sense of was put wrongly by whoever typed it. */
function refusal(status: number, answer: ApiError | undefined): UserError {
  const { code, message = `The daemon answered ${status}.` } = answer?.error ?? {};
  return new UserError(message, { ...(code && { code }), exitCode: status === 400 ? ExitCode.usage : ExitCode.failed });
}
