import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

export type Env = { Bindings: Partial<HttpBindings> };

/** The state of a client's connection until it has the whole response. */
export interface Connection {
  /** Aborted when the client disconnects before it has the whole response. */
  gone: AbortSignal;
  /** Called once, when the response was sent or the client has disconnected. */
  onEnd(listener: (hasLeft: boolean) => void): void;
}

export function connectionOf(context: Context<Env>): Connection {
  const outgoing = context.env?.outgoing;
  const gone = new AbortController();
  const listeners: ((hasLeft: boolean) => void)[] = [];
  let ended: boolean | undefined;
  const end = () => {
    if (ended !== undefined) return;
    ended = outgoing?.writableFinished !== true;
    if (ended) gone.abort();
    for (const listener of listeners) listener(ended);
  };
  outgoing?.once("finish", end);
  outgoing?.once("close", end);
  return {
    gone: gone.signal,
    onEnd(listener) {
      if (ended === undefined) listeners.push(listener);
      else listener(ended);
    },
  };
}
