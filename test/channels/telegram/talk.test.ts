import { describe, expect, test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { Status } from "../../../src/protocol/api.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { isAfterTool, lastUserText } from "../../support/model.ts";
import type { BotApi } from "../../support/telegram/bot-api.ts";
import { OWNER, telegramOf, telegraphed } from "../../support/telegram/daemon.ts";
import type { Update } from "../../support/telegram/updates.ts";
import { until } from "../../support/until.ts";

const messagesOf = async (daemon: { json<T>(method: string, path: string): Promise<T> }, conversation = "main") =>
  (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}&limit=200`)).items.reverse();
const callsOf = (api: BotApi, method: RegExp) => api.calls.filter((call) => method.test(call.method));

describe("answers", () => {
  test("fifty messages in a burst are each answered once, in their order, though some come twice and out of order", async () => {
    const { api, owner, daemon } = await telegraphed();
    const early = api.updates.skip();
    const sent: Update[] = [];
    for (let index = 1; index < 50; index += 1) sent.push(owner.send(`message ${index}`));
    api.updates.again(sent[3]!);
    api.updates.again({ ...sent[5]!, update_id: api.updates.skip() });
    api.updates.again({
      ...sent[0]!,
      update_id: early,
      message: { ...(sent[0]!.message as object), message_id: 99_999, text: "message 0" },
    });
    await until("fifty answers", () => owner.shown().length >= 50, 60_000);
    await until("nothing to be left", async () => {
      const { queue } = await daemon.json<Status>("GET", "/api/status");
      return queue.owed + queue.waiting + queue.running === 0;
    });
    const texts = owner.shown().map(({ text }) => text);
    expect([...texts].sort()).toEqual(Array.from({ length: 50 }, (_, index) => `You said: message ${index}`).sort());
    expect(texts.filter((text) => !text.endsWith("message 0"))).toEqual(
      Array.from({ length: 49 }, (_, index) => `You said: message ${index + 1}`),
    );
    expect((await messagesOf(daemon)).every(({ source }) => source.channel === "telegram")).toBe(true);
    expect(api.updates.waiting()).toBe(0);
  });

  test("are shown as they are written, no faster than Telegram allows, and end exact; only they sound, the tools' line does not", async () => {
    const words = Array.from({ length: 90 }, (_, index) => `**word${index}** `);
    const model: Model = (request) =>
      isAfterTool(request) ? { say: words, gapMs: 60 } : { call: [{ tool: "squad_status", args: {} }], delayMs: 300 };
    const { api, owner } = await telegraphed(model);
    owner.send("go on");
    const final = words.join("").replaceAll("*", "").trim();
    const beginning = await owner.sees(/^word0 /);
    expect(beginning.text).not.toBe(final);
    await until("the whole answer", () => owner.shown().some(({ text }) => text === final));
    await until("the tools' line", () => owner.shown().some(({ text }) => text === "⚙ squad_status ✓"));
    const shown = owner.shown();
    expect(shown.map(({ silent }) => silent).sort()).toEqual([false, true]);
    expect(shown.find(({ silent }) => silent)!.text).toContain("squad_status");
    const told = callsOf(api, /^(?:sendMessage|editMessageText)$/);
    // These updates come from the answer: a tool that ends at once is shown only once.
    expect(told.filter(({ payload }) => String(payload.text).includes("word0")).length).toBeGreaterThan(4);
    const changes = told.map(({ at }) => at);
    // The last updates of the answer and of the tools are sent without delay.
    const paced = changes.slice(0, -2);
    for (const [index, at] of paced.slice(1).entries()) expect(at - paced[index]!).toBeGreaterThan(900);
  });

  test("a flood is waited out for as long as Telegram says, for sends and for edits", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index} `);
    const { api, owner } = await telegraphed(() => ({ say: words, gapMs: 60 }));
    api.fail("sendMessage", { kind: "flood", retryAfter: 2 });
    // Longer than the delay of any other retry.
    api.fail("editMessageText", { kind: "flood", retryAfter: 5 });
    owner.send("hello");
    await owner.sees(new RegExp(`^${words.join("").trim()}$`));
    expect(owner.shown()).toHaveLength(1);
    const [first, second] = callsOf(api, /^sendMessage$/);
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(1_950);
    const edits = callsOf(api, /^editMessageText$/);
    expect(edits[1]!.at - edits[0]!.at).toBeGreaterThanOrEqual(4_950);
  });

  test("that Telegram cannot read as HTML come as plain text", async () => {
    const { api, owner } = await telegraphed();
    api.fail("sendMessage", { kind: "refuse", status: 400, description: "Bad Request: can't parse entities: whatever" });
    owner.send("so **bold**");
    expect((await owner.sees(/^You said: so bold$/)).entities).toEqual([]);
  });

  test("of every kind arrive whole: long ones in pieces with one sound, code as a file, and an edit changes nothing that is the same", async () => {
    const long = Array.from({ length: 50 }, (_, index) => `Paragraph ${index}. ${"some words ".repeat(55)}`.trim()).join("\n\n");
    const code = `\`\`\`ts\n${"const a = 1;\n".repeat(400)}\`\`\``;
    const { owner, api } = await telegraphed((request) => ({
      say: lastUserText(request).includes("code") ? `Look:\n\n${code}` : long,
    }));
    owner.send("long");
    await until("the last piece", () => owner.shown().some(({ text }) => text.includes("Paragraph 49.")));
    const pieces = owner.shown();
    expect(pieces.length).toBeGreaterThan(6);
    expect(pieces.map(({ text }) => text).join("\n\n")).toBe(long);
    expect(pieces.map(({ silent }) => silent)).toEqual(pieces.map((_, index) => index > 0));
    owner.send("code");
    const file = await until("the file", () => owner.shown().find(({ document }) => document));
    expect(file.document).toMatchObject({ name: "code-1.ts" });
    expect(file.document!.content.toString()).toBe("const a = 1;\n".repeat(400));
    expect(api.calls.filter(({ method }) => method === "editMessageText").length).toBeLessThan(4);
  });
});

describe("what is said", () => {
  test("a changed message changes one that waits; for one that is answered there is a hint", async () => {
    const { owner, daemon } = await telegraphed((request) => ({
      say: `Answer to ${/\] (.*)/.exec(lastUserText(request))?.[1]}`,
      delayMs: 1_500,
    }));
    const first = owner.send("first");
    const second = owner.send("secnod");
    await until("both to wait", async () => (await messagesOf(daemon)).length === 2);
    owner.edit(second, "second");
    await owner.sees(/^Answer to second$/);
    expect((await messagesOf(daemon)).map(({ text }) => text)).toEqual(["first", "second"]);
    owner.edit(first, "first, but too late");
    const hint = await owner.sees(/its change was not taken/);
    expect(hint.silent).toBe(true);
    expect((await messagesOf(daemon)).map(({ text }) => text)).toEqual(["first", "second"]);
  });

  test("a correction that comes before its message is one message with it", async () => {
    const { api, owner, daemon } = await telegraphed();
    const id = api.updates.skip();
    const message = {
      message_id: 9_001,
      from: { id: OWNER, is_bot: false, first_name: "Olga" },
      chat: { id: OWNER, type: "private" },
      date: Math.floor(Date.now() / 1000),
    };
    api.updates.add({ edited_message: { ...message, text: "corrected", edit_date: message.date } });
    await owner.sees(/^You said: corrected$/);
    api.updates.again({ update_id: id, message: { ...message, text: "corected" } });
    owner.send("next");
    await owner.sees(/^You said: next$/);
    expect((await messagesOf(daemon)).map(({ text }) => text)).toEqual(["corrected", "next"]);
  });

  test("commands answer in the middle of a turn, and /cancel ends it", async () => {
    const { owner, daemon, api } = await telegraphed(() => ({ stall: "I begin to" }));
    owner.send("take your time");
    await owner.sees(/^I begin to/);
    owner.send("/status");
    const status = await owner.sees(/^IO \d/);
    expect(status.text).toMatch(/Model: scripted/);
    expect(status.text).toMatch(/Queue: 1 running, 0 queued/);
    expect(status.text).toMatch(/take your time/);
    owner.send("/squads");
    await owner.sees(/^There is no squad yet/);
    owner.send("/tasks@io_test_bot");
    await owner.sees(/^There is no task yet/);
    owner.send("/runs");
    await owner.sees(/^There is no run yet/);
    owner.send("/approvals");
    await owner.sees(/^Nothing waits for your decision/);
    owner.send("/help");
    await owner.sees(/\/cancel: /);
    owner.send("/frobnicate");
    await owner.sees(/There is no command \/frobnicate/);
    owner.send("/cancel");
    await owner.sees(/^Cancelled: “take your time”/);
    await owner.sees(/^\(cancelled\)$/);
    expect((await messagesOf(daemon))[0]).toMatchObject({ status: "cancelled" });
    owner.send("/cancel");
    await owner.sees(/Nothing is being answered here/);
    owner.send("one more");
    await until("it to run", async () => (await messagesOf(daemon)).at(-1)?.status === "running");
    owner.send("/stop");
    await owner.sees(/^Stopped: 1 messages, 0 tasks, 0 runs/);
    expect(callsOf(api, /^setMyCommands$/)).toHaveLength(1);
  });

  test("/new begins another conversation, by a name goes to that one, and the same goes on at the terminal and comes back", async () => {
    const { owner, daemon, model } = await telegraphed();
    owner.send("in main");
    await owner.sees(/^You said: in main$/);
    owner.send("/new");
    owner.send("in another");
    await owner.sees(/conversation chat-2/);
    await owner.sees(/^You said: in another$/);
    owner.send("/new garden plans");
    await owner.sees(/conversation garden-plans/);
    owner.send("in the garden");
    await owner.sees(/^You said: in the garden$/);
    owner.send("/new ../../etc");
    await owner.sees(/cannot be a name/);
    owner.send("/new main");
    await owner.sees(/conversation main/);
    const shown = owner.shown().length;
    expect(await daemon.ask({ text: "from the terminal", source: "tui" })).toMatchObject({
      reply: "You said: from the terminal",
    });
    owner.send("and back");
    await owner.sees(/^You said: and back$/);
    expect(owner.shown()).toHaveLength(shown + 1);
    expect((await messagesOf(daemon)).map(({ text, source }) => [text, source.channel])).toEqual([
      ["in main", "telegram"],
      ["from the terminal", "tui"],
      ["and back", "telegram"],
    ]);
    expect((await messagesOf(daemon, "chat-2")).map(({ text }) => text)).toEqual(["in another"]);
    expect((await messagesOf(daemon, "garden-plans")).map(({ text }) => text)).toEqual(["in the garden"]);
    // One session knows what was said in both places.
    expect(JSON.stringify(model.requests.at(-1)!.messages)).toMatch(
      /\[via telegram\] in main[\s\S]*\[via tui\] from the terminal[\s\S]*\[via telegram\] and back/,
    );
  });

  test("a pinned status is kept true", async () => {
    const { owner, daemon } = await telegraphed(() => ({ stall: "thinking" }));
    owner.send("/status pin");
    const pinned = await until("the pin", () => owner.shown().find((each) => each.pinned));
    expect(pinned).toMatchObject({ silent: true, text: expect.stringMatching(/Nothing runs/) });
    owner.send("some work");
    await until("it to be renewed", () => /some work/.test(pinned.text), 20_000);
    expect((await telegramOf(daemon)).state).toBe("connected");
  });
});
