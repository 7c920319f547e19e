import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";

export type Env = { Bindings: Partial<HttpBindings> };

/** Whether the client of a request is still there, and has its whole answer. */
export interface Connection {
  /** Aborted when the client leaves before it has its whole answer. */
  gone: AbortSignal;
  /** Called once, when the answer has been sent, or the client has left without it. */
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
