// A server of the newest protocol alone that takes its time to start, as programs do that load much: its first argument says how
// long.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

function make() {
  const server = new McpServer({ name: "slow", version: "1" });
  const told = { content: [{ type: "text", text: "awake" }] };
  server.registerTool("wake", { description: "Says that it is awake." }, () => told);
  return server;
}
setTimeout(() => serveStdio(make, { legacy: "reject" }), Number(process.argv[2]));
