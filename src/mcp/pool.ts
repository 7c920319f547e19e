import type { Entry } from "./entries.ts";
import { createServer, type Server, type ServerDeps } from "./server.ts";

export interface PoolDeps extends Omit<ServerDeps, "entry"> {
  /** Ends servers that an earlier life or this one left behind. */
  endLeftovers: () => Promise<void>;
}

/** The servers of this life, by what is written down for each. */
export function createPool({ endLeftovers, openTransport, ...deps }: PoolDeps) {
  const servers = new Map<string, Server>();
  let leftovers: Promise<void> | undefined;

  /** Once, before the first server of this life is started. */
  const openAlone = async (entry: Entry) => {
    leftovers ??= endLeftovers();
    await leftovers;
    return openTransport(entry);
  };

  return {
    /** The server of an entry; one that was another until now is ended. */
    of(entry: Entry): Server {
      const known = servers.get(entry.key);
      if (known?.entry().hash === entry.hash) {
        if (JSON.stringify(known.entry().config) !== JSON.stringify(entry.config)) known.replace(entry);
        return known;
      }
      if (known) void known.close();
      const made = createServer({ ...deps, entry, openTransport: openAlone });
      servers.set(entry.key, made);
      return made;
    },
    all: () => [...servers.values()],
    drop(key: string): void {
      const server = servers.get(key);
      servers.delete(key);
      void server?.close();
    },
    async close(): Promise<void> {
      await Promise.all([...servers.values()].map((server) => server.close()));
      if (leftovers !== undefined) await endLeftovers();
    },
  };
}
export type Pool = ReturnType<typeof createPool>;
