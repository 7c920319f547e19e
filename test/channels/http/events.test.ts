import { OpenAPIHono } from "@hono/zod-openapi";
import { expect, onTestFinished, test } from "vitest";
import { eventRoutes } from "../../../src/channels/http/events.ts";
import { readEvents } from "../../../src/client/sse.ts";
import { createBroadcast } from "../../../src/lib/broadcast.ts";
import { createEventLog } from "../../../src/store/events.ts";
import { createHub } from "../../../src/store/hub.ts";
import { openStore } from "../../../src/store/open.ts";
import { quietLog } from "../../support/engine.ts";

test("an event that happens while a client is being told what it missed is told once, in its place", async () => {
  const store = openStore(":memory:");
  const events = createEventLog(store);
  const hub = createHub({ events, log: quietLog });
  onTestFinished(() => {
    hub.close();
    store.close();
  });
  const say = (title: string) => hub.emit({ type: "page.written", data: { path: "pages/a.md", title } });
  say("missed");
  let asked = 0;
  const app = new OpenAPIHono();
  eventRoutes(app, {
    hub,
    disk: () => ({ state: "ok", since: "", detail: null }),
    outbox: { received: () => undefined },
    conversations: { follow: () => () => undefined },
    words: createBroadcast(),
    events: {
      ...events,
      since(id, limit) {
        asked += 1;
        if (asked === 1) say("meanwhile");
        const missed = events.since(id, limit);
        if (missed.upTo === id) say("live");
        return missed;
      },
    },
  });
  const leave = new AbortController();
  const response = await app.request("/api/events", { headers: { "last-event-id": "0" }, signal: leave.signal });
  const heard: string[] = [];
  for await (const { data } of readEvents(response.body!)) {
    const { title } = JSON.parse(data) as { title: string };
    heard.push(title);
    if (title === "live") break;
  }
  expect(heard).toEqual(["missed", "meanwhile", "live"]);
});
