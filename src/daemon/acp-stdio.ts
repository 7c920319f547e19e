import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import type { AcpAccess } from "../channels/acp/access.ts";
import { createAcpAgent } from "../channels/acp/agent.ts";

/** Serves ACP on standard input and output until the input ends. What was begun continues in the daemon. */
export async function serveAcp(access: AcpAccess, version: string): Promise<void> {
  // Standard output belongs to the protocol alone, so redirect what libraries print.
  console.log = console.info = console.debug = console.error;
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>;
  const input = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>;
  await createAcpAgent(access, version).connect(ndJsonStream(output, input)).closed;
}
