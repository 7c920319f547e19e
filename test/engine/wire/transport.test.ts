import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createHttpTransport, type Incoming } from "../../../src/engine/wire/transport.ts";

/** Starts a server on loopback. `answer` receives how many requests the same connection carried before. */
async function serve(answer: (reply: ServerResponse, before: number) => void) {
  const carried = new WeakMap<object, number>();
  const server = createServer((request: IncomingMessage, reply) => {
    const before = carried.get(request.socket) ?? 0;
    carried.set(request.socket, before + 1);
    request.resume().once("end", () => answer(reply, before));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const transport = createHttpTransport(async () => undefined);
  const ask = () => transport({ method: "POST", url, headers: {}, body: "{}", signal: new AbortController().signal });
  return { ask };
}

async function textOf({ body }: Incoming): Promise<string> {
  let text = "";
  for await (const piece of body) text += Buffer.from(piece).toString();
  return text;
}

test("a connection is kept, and one that the server gave up meanwhile costs nothing but a new one", async () => {
  const befores: number[] = [];
  const { ask } = await serve((reply, before) => {
    befores.push(before);
    if (before === 2) reply.destroy();
    else reply.end("well");
  });
  for (let index = 0; index < 3; index += 1) expect(await textOf(await ask())).toBe("well");
  expect(befores).toEqual([0, 1, 2, 0]);
});

test("a new connection that is cut is told, and the request is not sent again", async () => {
  let asked = 0;
  const { ask } = await serve((reply) => {
    asked += 1;
    reply.destroy();
  });
  await expect(ask()).rejects.toMatchObject({ message: expect.stringMatching(/cut the connection/) });
  expect(asked).toBe(1);
});

test("an answer that is cut after it began is told, and the request is not sent again", async () => {
  let asked = 0;
  const { ask } = await serve((reply, before) => {
    asked += 1;
    if (before === 0) return reply.end("well");
    reply.write("and th", () => reply.destroy());
  });
  await textOf(await ask());
  const second = await ask();
  await expect(textOf(second)).rejects.toMatchObject({ message: expect.stringMatching(/cut the connection/) });
  expect(asked).toBe(2);
});
