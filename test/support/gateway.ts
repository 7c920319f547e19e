import { createServer, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { AtTheEnd } from "./home.ts";

/** Starts a loopback proxy that forwards every host name to one server, so that tests can use the providers' real names. */
export async function startGateway(
  origin: string,
  atTheEnd: AtTheEnd = onTestFinished,
): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((incoming, response) => {
    const { host, port, pathname, search } = new URL(incoming.url ?? "/", "http://nowhere.invalid");
    asked.push(port ? host : `${host}:80`);
    const { method, headers } = incoming;
    const onward = request(`${origin}${pathname}${search}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    incoming.pipe(onward);
  });
  server.on("connect", ({ url = "" }, client: Socket, head) => {
    asked.push(url);
    const { hostname, port } = new URL(origin);
    const upstream = connect(Number(port), hostname, () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  atTheEnd(
    () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        for (const socket of sockets) socket.destroy();
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
