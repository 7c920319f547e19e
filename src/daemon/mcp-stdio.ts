import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { type IoAccess, isAway } from "../channels/mcp/access.ts";
import { createMcpServer } from "../channels/mcp/server.ts";

/** The daemon as the client's process reaches it. */
export interface DaemonAccess {
  request: IoAccess["request"];
  /** Whether the daemon that is gone was stopped by somebody, instead of being killed. */
  wasStopped(): boolean;
  start(): Promise<unknown>;
}

/** How long a killed daemon may stay away before it is started here: a service starts it sooner. */
const KILLED_MS = 5_000;

/** Requests that start a killed daemon again. */
function reviving({ request, wasStopped, start }: DaemonAccess): IoAccess["request"] {
  let lostAt: number | undefined;
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    try {
      const answer = await request<T>(method, path, body);
      lostAt = undefined;
      return answer;
    } catch (error) {
      if (!isAway(error)) lostAt = undefined;
      if (!isAway(error) || wasStopped()) throw error;
      // The daemon may have received this request. A later one finds nobody, so it can be sent again.
      lostAt ??= performance.now();
      if (performance.now() - lostAt < KILLED_MS) throw error;
      await start();
      return request<T>(method, path, body);
    }
  };
}

/** Serves MCP on standard input and output until the input ends. What was begun continues in the daemon. */
export function serveMcp(daemon: DaemonAccess, version: string): Promise<void> {
  let isClosing = false;
  const request = reviving(daemon);
  return new Promise((ended) => {
    // This listener must precede the protocol's, which ends every running call.
    process.stdin.once("end", () => {
      isClosing = true;
    });
    const handle = serveStdio(() => createMcpServer({ request, isClosing: () => isClosing }, version));
    process.stdin.once("end", () => void handle.close().finally(ended));
  });
}
