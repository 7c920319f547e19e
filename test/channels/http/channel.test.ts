import { join } from "node:path";
import { readEvents } from "../../../src/client/sse.ts";
import { readDaemonFile } from "../../../src/home/daemon-file.ts";
import { formatApproval } from "../../../src/protocol/approval-text.ts";
import type { Approval } from "../../../src/protocol/approvals.ts";
import { type Message, shownFailure } from "../../../src/protocol/messages.ts";
import type { TestDaemon } from "../../support/daemon.ts";
import { channelSuite, type Person } from "../suite.ts";

const ANSWERS = { allow: "allow", deny: "deny" };

/** A person with the token, whose client follows the conversation. */
async function personAt(daemon: TestDaemon): Promise<Person> {
  const heard: string[] = [];
  let lastEventId = "0";
  let away = new AbortController();
  // The port changes with a restart.
  const request = (path: string, init: RequestInit = {}) => {
    const { host, port } = readDaemonFile(join(daemon.home, "daemon.json"))!;
    return fetch(`http://${host}:${port}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${daemon.token}`, ...init.headers },
    });
  };
  const follow = async () => {
    const stream = await request("/api/events?conversation=main", {
      signal: away.signal,
      headers: { "last-event-id": lastEventId },
    });
    const read = async () => {
      for await (const { id, event, data } of readEvents(stream.body!)) {
        lastEventId = id;
        if (event === "approval.asked") heard.push(formatApproval(JSON.parse(data) as Approval, ANSWERS));
        if (event !== "message.finished") continue;
        const message = JSON.parse(data) as Message;
        heard.push(shownFailure(message) ?? message.reply ?? "");
      }
    };
    // The stream ends when the person leaves or the daemon ends.
    read().catch(() => undefined);
  };
  await follow();
  return {
    async say(text, key) {
      const body = JSON.stringify({ text, idempotencyKey: key, source: "web" });
      const { status } = await request("/api/messages", {
        method: "POST",
        body,
        headers: { "content-type": "application/json" },
      });
      if (status !== 202) throw new Error(`the message was answered with ${status}`);
    },
    heard: () => heard,
    async leave() {
      away.abort();
    },
    async back() {
      away = new AbortController();
      await follow();
    },
  };
}

channelSuite({
  name: "http",
  prepare: async () => ({ config: {}, env: {} }),
  person: personAt,
  async stranger(daemon, text) {
    const init = { method: "POST", body: JSON.stringify({ text }), headers: { "content-type": "application/json" } };
    const { status } = await fetch(`${daemon.url}/api/messages`, init);
    if (status !== 401) throw new Error(`a stranger was answered with ${status}`);
  },
  isFromHere: ({ channel }) => channel === "web",
});
