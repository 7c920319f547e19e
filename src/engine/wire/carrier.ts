import type { Readable } from "node:stream";

/** A request to a provider. */
export interface Outgoing {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

/** A response, in the form common to all carriers. */
export interface Carried {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Readable;
}

/** A way to the provider: direct, or through a proxy. Rejects with whatever its library throws. */
export type Carrier = (request: Outgoing, address: URL) => Promise<Carried>;
