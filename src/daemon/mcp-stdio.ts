import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { IoAccess } from "../channels/mcp/access.ts";
import { createMcpServer } from "../channels/mcp/server.ts";

/** Serves MCP on standard input and output until the input ends. What was begun goes on in the daemon. */
export function serveMcp(request: IoAccess["request"], version: string): Promise<void> {
  let isClosing = false;
  return new Promise((ended) => {
    // Before the protocol hears of it, which ends every call that is under way.
    process.stdin.once("end", () => {
      isClosing = true;
    });
    const handle = serveStdio(() => createMcpServer({ request, isClosing: () => isClosing }, version));
    process.stdin.once("end", () => void handle.close().finally(ended));
  });
}
