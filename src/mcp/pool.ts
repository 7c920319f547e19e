import type { Entry } from "./entries.ts";
import { createServer, type Server, type ServerDeps } from "./server.ts";

export interface PoolDeps extends Omit<ServerDeps, "entry"> {
  /** Stops servers that this daemon or an earlier one left behind. */
  endLeftovers: () => Promise<void>;
}

/** The servers of this process, one per entry. */
export function createPool({ endLeftovers, openTransport, ...deps }: PoolDeps) {
  const servers = new Map<string, Server>();
  let leftovers: Promise<void> | undefined;

  /** Stops leftover servers once, before the first server starts. */
  const openAfterCleanup = async (entry: Entry) => {
    leftovers ??= endLeftovers();
    await leftovers;
    return openTransport(entry);
  };

  return {
    /** The server of an entry; stops a different server with the same key. */
    of(entry: Entry): Server {
      const known = servers.get(entry.key);
      if (known?.entry().hash === entry.hash) {
        if (JSON.stringify(known.entry().config) !== JSON.stringify(entry.config)) known.replace(entry);
        return known;
      }
      if (known) void known.close();
      const made = createServer({ ...deps, entry, openTransport: openAfterCleanup });
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
