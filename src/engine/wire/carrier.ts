import type { Readable } from "node:stream";

/** A request on its way to a provider. */
export interface Outgoing {
  method: "GET" | "POST";
  url: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

/** What came back as one way of carrying hands it over. */
export interface Carried {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Readable;
}

/** One way to the provider: straight, or through a proxy. Rejects with whatever its library throws. */
export type Carrier = (request: Outgoing, address: URL) => Promise<Carried>;
