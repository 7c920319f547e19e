import { createHash } from "node:crypto";

/** Providers accept no longer tool names. */
const LONGEST = 64;

/**
 * The name under which a model gets a server's tool. The server's part never contains two underscores in a row, so a rule for
 * `mcp__a__*` matches only the server `a`. `isTaken` prevents two tools from sharing a name.
 */
export function toolName(server: string, tool: string, isTaken: (name: string) => boolean = () => false): string {
  const plain = `mcp__${serverPart(server)}__${tool.replace(/[^A-Za-z0-9_-]/g, "_")}`;
  if (plain.length <= LONGEST && !isTaken(plain)) return plain;
  const hash = createHash("sha256")
    .update(JSON.stringify([server, tool]))
    .digest("hex")
    .slice(0, 8);
  return `${plain.slice(0, LONGEST - hash.length - 1)}_${hash}`;
}

function serverPart(server: string): string {
  const plain = server
    .replace(/[^A-Za-z0-9-]+/g, "_")
    .replace(/^_/, "")
    .replace(/_$/, "");
  return (plain === "" ? "server" : plain).slice(0, 40);
}
