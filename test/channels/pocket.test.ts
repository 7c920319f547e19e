import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { bundled } from "../support/bundled.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { channelSuite, type Person } from "./suite.ts";

const program = bundled(join(packageRoot, "test", "support", "pocket-daemon.ts"));
const PASSWORD = "open-sesame";
/** The port of the current test's daemon. */
const place = { port: 0 };

async function person(): Promise<Person> {
  const heard: string[] = [];
  const took = new Set<string>();
  let socket: Socket;
  const send = async (key: string, say?: string) => {
    took.delete(key);
    socket.write(`${JSON.stringify({ password: PASSWORD, key, say })}\n`);
    await until(`${key} to be taken`, () => took.has(key));
  };
  const come = async () => {
    socket = await new Promise<Socket>((connected) => {
      const made = connect(place.port, "127.0.0.1", () => connected(made));
    });
    createInterface({ input: socket }).on("line", (line) => {
      const { reply, took: key } = JSON.parse(line) as { reply?: string; took?: string };
      if (reply !== undefined) heard.push(reply);
      if (key !== undefined) took.add(key);
    });
    // The daemon may be killed while it is connected.
    socket.on("error", () => socket.destroy());
    await send("here");
  };
  await come();
  onTestFinished(() => void socket.destroy());
  return {
    say: (text, key) => send(key, text),
    heard: () => heard,
    async leave() {
      socket.destroy();
    },
    back: come,
  };
}

channelSuite({
  name: "pocket, as somebody new would add it",
  async prepare() {
    place.port = await freePort();
    return { config: {}, env: { POCKET_PORT: String(place.port), POCKET_PASSWORD: PASSWORD } };
  },
  program: async () => [await program],
  person,
  async stranger(_daemon, text) {
    await new Promise<void>((hungUp) => {
      const socket = connect(place.port, "127.0.0.1", () =>
        socket.write(`${JSON.stringify({ password: "guess", key: "k", say: text })}\n`),
      );
      socket.on("close", () => hungUp());
    });
  },
  isFromHere: ({ channel }) => channel === "telegram",
});
