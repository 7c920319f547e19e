import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { PERSONA } from "../../src/orchestrator/system-message.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

test("the model receives IO's own system message, the source tag, and only IO's tools", async () => {
  const model = await scriptedModel(() => ({ say: "fine" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const answered = await daemon.ask({ text: "how are you?", source: "tui" });
  expect(answered).toMatchObject({
    status: "done",
    reply: "fine",
    partial: false,
    error: null,
    attempts: 1,
    route: { answered: "directly" },
  });
  expect(answered.usage.calls).toBe(1);
  const request = model.requests[0]!;
  expect(request.model).toBe("scripted");
  expect(textOf(request.messages[0])).toContain(PERSONA);
  expect(request.messages.filter(({ role }) => role === "system")).toHaveLength(1);
  expect(lastUserText(request)).toMatch(/\n\[via tui\] how are you\?$|^\[via tui\] how are you\?$/);
  const names = (request.tools ?? []).map((tool) => tool.function.name);
  expect(names.filter((name) => ["bash", "view", "edit", "create", "task", "grep", "glob", "sql"].includes(name))).toEqual([]);
});

test("deltas arrive while the model is still speaking, and a client that was away gets the rest, nothing twice", async () => {
  const pieces = Array.from({ length: 12 }, (_, index) => `piece${index} `);
  const model = await scriptedModel(() => ({ say: pieces, gapMs: 60 }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const first = await daemon.follow({ conversation: "main" });
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "speak" });
  await until("three deltas", () => first.of("message.delta").length >= 3);
  const running = await daemon.json<Message>("GET", `/api/messages/${id}`);
  expect(running.status).toBe("running");
  first.leave();
  const seen = [...first.events];
  // A waiting request is answered at the end.
  const ended = await daemon.json<Message>("GET", `/api/messages/${id}?waitMs=30000`);
  expect([ended.status, ended.reply]).toEqual(["done", pieces.join("")]);
  expect((await daemon.fetch(`/api/messages/${id}?waitMs=30001`)).status).toBe(400);

  const second = await daemon.follow({ conversation: "main", lastEventId: seen.at(-1)!.id });
  await until("the finished message", () => second.of("message.finished").length === 1);
  const all = [...seen, ...second.events];
  const ids = all.map((event) => Number(event.id));
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  const said = all
    .filter(({ event }) => event === "message.delta")
    .map(({ body }) => body.text)
    .join("");
  expect(said).toBe(pieces.join(""));
  expect(all.map(({ event }) => event).filter((name) => name !== "message.delta")).toEqual([
    "message.queued",
    "message.started",
    "message.finished",
  ]);
});

test("a client that comes and goes while the model speaks hears every piece once", async () => {
  const pieces = Array.from({ length: 300 }, (_, index) => `${index} `);
  const model = await scriptedModel(() => ({ say: pieces, gapMs: 4 }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  let follower = await daemon.follow({ conversation: "main" });
  await daemon.json("POST", "/api/messages", { text: "speak" });
  const heard: typeof follower.events = [];
  while (!heard.some(({ event }) => event === "message.finished")) {
    const seen = await until("something new", () =>
      follower.events.length >= 3 || follower.of("message.finished").length > 0 ? [...follower.events] : undefined,
    );
    follower.leave();
    heard.push(...seen);
    follower = await daemon.follow({ conversation: "main", lastEventId: heard.at(-1)!.id });
  }
  expect(
    heard
      .filter(({ event }) => event === "message.delta")
      .map(({ body }) => body.text)
      .join(""),
  ).toBe(pieces.join(""));
});

test("twenty messages at once into one conversation are answered one at a time, in order", async () => {
  let atWork = 0;
  let most = 0;
  const model = await scriptedModel(async (request) => {
    atWork += 1;
    most = Math.max(most, atWork);
    await new Promise((go) => setTimeout(go, 15));
    atWork -= 1;
    return { say: `answer to ${/number (\d+)/.exec(lastUserText(request))?.[1]}` };
  });
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const sent = await Promise.all(
    Array.from({ length: 20 }, (_, index) => daemon.json<{ id: string }>("POST", "/api/messages", { text: `number ${index}` })),
  );
  const finished: Message[] = [];
  for (const { id } of sent) {
    const done = await until(`message ${id}`, async () => {
      const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
      return message.status === "done" ? message : undefined;
    });
    finished.push(done!);
  }
  for (const message of finished) expect(message.reply).toBe(`answer to ${/number (\d+)/.exec(message.text)?.[1]}`);
  expect(most).toBe(1);
  const inOrderOfArrival = [...finished].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
  const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?limit=50");
  const asked = model.requests.map((request) => /number (\d+)/.exec(lastUserText(request))?.[1]);
  expect(asked).toEqual(items.reverse().map((message) => /number (\d+)/.exec(message.text)?.[1]));
  expect(inOrderOfArrival).toHaveLength(20);
});

test("two conversations are answered side by side", async () => {
  let waiting = 0;
  let release: () => void = () => {};
  const both = new Promise<void>((resolve) => {
    release = resolve;
  });
  const model = await scriptedModel(async () => {
    waiting += 1;
    if (waiting === 2) release();
    await both;
    return { say: "together" };
  });
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const answers = await Promise.all([
    daemon.ask({ text: "a", conversation: "one" }),
    daemon.ask({ text: "b", conversation: "two" }),
  ]);
  expect(answers.map(({ reply }) => reply)).toEqual(["together", "together"]);
});

test("a conversation remembers what was said in it, and only in it", async () => {
  const model = await scriptedModel((request) => ({
    say: `${request.messages.filter(({ role }) => role === "user").length} so far`,
  }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  await daemon.ask({ text: "first", conversation: "one" });
  expect((await daemon.ask({ text: "second", conversation: "one" })).reply).toBe("2 so far");
  expect((await daemon.ask({ text: "first", conversation: "two" })).reply).toBe("1 so far");
});

test("the same idempotency key again answers with the first message", async () => {
  const model = await scriptedModel(() => ({ say: "once" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const first = await daemon.ask({ text: "pay", idempotencyKey: "k1" });
  const second = await daemon.ask({ text: "pay", idempotencyKey: "k1" });
  expect(second.id).toBe(first.id);
  expect(model.requests).toHaveLength(1);
});

test("a running message can be cancelled, keeps what was said, and the next one works", async () => {
  const model = await scriptedModel((_request, index) => (index === 0 ? { stall: "I was about to" } : { say: "here" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const follower = await daemon.follow();
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "long" });
  await until("a delta", () => follower.of("message.delta").length > 0);
  const cancelled = await daemon.json<Message>("POST", `/api/messages/${id}/cancel`);
  expect(cancelled).toMatchObject({ status: "cancelled", partial: true, reply: "I was about to" });
  expect((await daemon.ask({ text: "and now?" })).reply).toBe("here");
});

test("stop ends what runs and cancels what waits, and the daemon stays up", async () => {
  const model = await scriptedModel((request) => (lastUserText(request).includes("work") ? { hang: true } : { say: "ready" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const ids = await Promise.all(
    ["work 1", "work 2", "work 3"].map((text) => daemon.json<{ id: string }>("POST", "/api/messages", { text })),
  );
  await until("the model to be asked", () => model.requests.length > 0);
  expect(await daemon.json("POST", "/api/stop")).toMatchObject({ messages: 3 });
  for (const { id } of ids) {
    await until(
      "the cancellation",
      async () => (await daemon.json<Message>("GET", `/api/messages/${id}`)).status === "cancelled",
    );
  }
  expect((await daemon.ask({ text: "still there?" })).reply).toBe("ready");
});

test("a model of another tier answers hard and easy messages only where the user allows it, and the record says which and why", async () => {
  const model = await scriptedModel(() => ({ say: "ready" }), { models: ["scripted", "big", "small"] });
  const home = temporaryHome({ modelTiers: { high: ["big"], medium: ["scripted"], low: ["small"] } });
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const TEXTS = ["refactor the authentication protocol", "how are you?", "fix a typo in the readme"];
  const asked = async () => {
    const used: string[] = [];
    for (const text of TEXTS) {
      const { route } = await daemon.ask({ text });
      used.push(model.requests.at(-1)!.model);
      expect(route.models).toEqual([used.at(-1)]);
      expect(route.modelReason).toEqual(
        used.at(-1) === "scripted" ? undefined : expect.stringContaining(`model ${used.at(-1)}: `),
      );
    }
    return used;
  };
  expect(await asked()).toEqual(["scripted", "scripted", "scripted"]);
  await daemon.json("PATCH", "/api/config", { modelByDifficulty: true });
  expect(await asked()).toEqual(["big", "scripted", "small"]);
  // It is one conversation, whichever model answers.
  const said = JSON.stringify(model.requests.at(-1)!.messages);
  for (const text of TEXTS) expect(said).toContain(text);
});
