import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { IoAccess } from "../channels/mcp/access.ts";
import { createMcpServer } from "../channels/mcp/server.ts";

/** Serves MCP on standard input and output until the input ends. What was begun continues in the daemon. */
export function serveMcp(request: IoAccess["request"], version: string): Promise<void> {
  let isClosing = false;
  return new Promise((ended) => {
    // This listener must precede the protocol's, which ends every running call.
    process.stdin.once("end", () => {
      isClosing = true;
    });
    const handle = serveStdio(() => createMcpServer({ request, isClosing: () => isClosing }, version));
    process.stdin.once("end", () => void handle.close().finally(ended));
  });
}
