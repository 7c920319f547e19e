import { connect } from "node:net";
import type { TestDaemon } from "./daemon.ts";

/** A client of `/v1/chat/completions` on its own connection. `leave` returns once the daemon has noticed that it hung up. */
export function startRawStream({ url, token }: TestDaemon, body: unknown) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let heard = "";
  socket.on("data", (chunk) => {
    heard += chunk;
  });
  const closed = new Promise<void>((done) => socket.once("close", () => done()));
  const text = JSON.stringify(body);
  const lines = [
    "POST /v1/chat/completions HTTP/1.1",
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${text}`);
  return {
    heard: () => heard,
    async leave(): Promise<void> {
      socket.end();
      await closed;
    },
  };
}
