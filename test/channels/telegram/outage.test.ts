import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Status } from "../../../src/protocol/api.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { runIo, type TestDaemon } from "../../support/daemon.ts";
import { filesBelow, inDatabase } from "../../support/orchestrator.ts";
import { BOT_TOKEN } from "../../support/telegram/bot-api.ts";
import { echo, isConnected, telegramOf, telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

const stateIs = (daemon: TestDaemon, state: string) =>
  until(`the channel to be ${state}`, async () => (await telegramOf(daemon)).state === state, 30_000);
const ended = (daemon: TestDaemon, count: number) =>
  until(`${count} messages to be done`, async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?limit=200");
    return items.filter(({ status }) => status === "done").length === count;
  });
const REPEAT = "(perhaps a repeat)\n";

describe("Telegram out of reach", () => {
  test("for an hour: the daemon lives, status and doctor say since when, and what is owed comes in order when it is back", {
    timeout: 180_000,
  }, async () => {
    const { api, owner, daemon, home, start } = await telegraphed((request) => ({
      say: `Answer ${request.messages.filter(({ role }) => role === "user").length}`,
      delayMs: 400,
    }));
    // A follower at the terminal or on the web page takes nothing away from the chat.
    await daemon.follow();
    for (const text of ["one", "two", "three"]) owner.send(text);
    await until("all to be taken", () => api.updates.waiting() === 0);
    await api.down();
    await ended(daemon, 3);
    await stateIs(daemon, "unreachable");
    await daemon.kill("SIGTERM");
    // Pretends that an hour has passed.
    const anHourAgo = new Date(Date.now() - 3_600_000).toISOString();
    inDatabase(home, (db) =>
      db.prepare("UPDATE io_state SET value = json_set(value, '$.since', ?) WHERE key = 'telegram:health'").run(anHourAgo),
    );
    const next = await start();
    const since = anHourAgo.slice(0, 16).replace("T", " ");
    await until("the status to tell", async () =>
      (await next.json<Status>("GET", "/api/status")).channels.some(
        ({ state, since: at }) => state === "unreachable" && at === anHourAgo,
      ),
    );
    expect((await runIo(["status"], home)).stdout).toContain(`Telegram: unreachable since ${since} UTC`);
    const { items } = JSON.parse((await runIo(["doctor", "--json"], home)).stdout) as {
      items: { check: string; state: string; found: string }[];
    };
    expect(items.find(({ check }) => check === "telegram")).toMatchObject({
      state: "failed",
      found: expect.stringContaining(`unreachable since ${since}`),
    });
    expect(await next.ask({ text: "are you there?" })).toMatchObject({ status: "done" });

    await api.up();
    await isConnected(next);
    await until("the answers", () => owner.shown().length === 3, 30_000);
    expect(owner.shown().map(({ text }) => text.replace(REPEAT, ""))).toEqual(["Answer 1", "Answer 2", "Answer 3"]);
    await until("nothing to be owed", async () => (await next.json<Status>("GET", "/api/status")).queue.owed === 0);
  });

  test.each([
    ["500", { kind: "status", status: 500 } as const],
    ["502", { kind: "status", status: 502 } as const],
    ["a cut", { kind: "cut" } as const],
  ])(
    "a send that ends in %s is repeated once Telegram answers again, and marked; nothing is lost and all is in order",
    async (_name, fault) => {
      const { api, owner } = await telegraphed();
      api.fail("sendMessage", fault);
      api.fail("getMe", { kind: "status", status: 502 }, 2);
      owner.send("one");
      owner.send("two");
      await owner.sees(/^You said: two$/);
      expect(owner.shown().map(({ text }) => text)).toEqual([`${REPEAT}You said: one`, "You said: two"]);
      // It was not sent again until Telegram had confirmed the bot's identity.
      const order = api.calls.map(({ method }) => method).filter((method) => method === "sendMessage" || method === "getMe");
      expect(order.slice(-6)).toEqual(["sendMessage", "getMe", "getMe", "getMe", "sendMessage", "sendMessage"]);
    },
  );

  test("a send whose confirmation was lost comes twice at most, and the second is marked", async () => {
    const { api, owner } = await telegraphed();
    api.fail("sendMessage", { kind: "cut", done: true });
    owner.send("one");
    await until("the repeat", () => owner.shown().length === 2, 20_000);
    owner.send("two");
    await owner.sees(/^You said: two$/);
    expect(owner.shown().map(({ text }) => text)).toEqual(["You said: one", `${REPEAT}You said: one`, "You said: two"]);
  });

  test("a message that has no room for its mark has it ahead of it", async () => {
    const full = "x".repeat(4_096);
    const { api, owner } = await telegraphed(() => ({ say: full }));
    api.fail("sendMessage", { kind: "cut" });
    owner.send("fill it");
    await until("the repeat", () => owner.shown().length === 2, 20_000);
    expect(owner.shown().map(({ text, silent }) => [text, silent])).toEqual([
      [REPEAT.trim(), true],
      [full, false],
    ]);
  });

  test("an edit that fails is repeated freely, and the answer stays one message", async () => {
    const words = Array.from({ length: 40 }, (_, index) => `word${index} `);
    const { api, owner } = await telegraphed(() => ({ say: words, gapMs: 60 }));
    api.fail("editMessageText", { kind: "cut", done: true }, 2);
    owner.send("go");
    await owner.sees(new RegExp(`^${words.join("").trim()}$`), 30_000);
    expect(owner.shown()).toHaveLength(1);
  });
});

// These two run concurrently, because nearly all of their time is spent waiting for half a minute.
describe.concurrent("what takes half a minute", () => {
  test("a slow server is waited for", async ({ expect, onTestFinished: atTheEnd }) => {
    const { api, owner } = await telegraphed(echo, { atTheEnd });
    api.fail("sendMessage", { kind: "slow", ms: 30_000 });
    owner.send("patience");
    await owner.sees(/^You said: patience$/, 40_000);
    owner.send("next");
    await owner.sees(/^You said: next$/);
    expect(owner.shown().map(({ text }) => text)).toEqual(["You said: patience", "You said: next"]);
  });

  test("a second program on the same token is named, and so is a webhook and a token that is not known", {
    timeout: 180_000,
  }, async ({ expect, onTestFinished: atTheEnd }) => {
    const { api, daemon, owner } = await telegraphed(echo, { atTheEnd });
    const other = setInterval(() => {
      void fetch(`${api.url}/bot${BOT_TOKEN}/getUpdates`, {
        method: "POST",
        body: JSON.stringify({ timeout: 1, offset: 0 }),
        headers: { "content-type": "application/json" },
      }).catch(() => undefined);
    }, 300);
    try {
      await stateIs(daemon, "conflict");
      expect((await telegramOf(daemon)).detail).toMatch(/second program polls with the same bot token/);
    } finally {
      clearInterval(other);
    }
    owner.send("still here?");
    await owner.sees(/You said: still here\?/, 30_000);
    api.held.webhook = true;
    await until("the webhook to be named", async () => /webhook/.test((await telegramOf(daemon)).detail ?? ""), 60_000);
    await daemon.json("PATCH", "/api/config", { telegramBotToken: "7000000001:AAE-another_token_that_nobody_knows_0000" });
    await stateIs(daemon, "refused");
    expect((await telegramOf(daemon)).detail).toMatch(/does not know the bot's token/);
  });
});

test("the token is in no log, error, answer, event or prompt, whatever goes wrong", async () => {
  const { api, owner, daemon, home, model } = await telegraphed(
    (request) => ({ say: `It is ${BOT_TOKEN}? ${request.messages.length}` }),
    { config: { logLevel: "debug" } },
  );
  api.fail("file", { kind: "cut" });
  api.fail("sendMessage", { kind: "cut" });
  owner.attach({ kind: "document", content: Buffer.from("x"), name: "a.txt" });
  await owner.sees(/It is \[secret\]\?/, 30_000);
  await api.down();
  await stateIs(daemon, "unreachable");
  const answers = await Promise.all(
    ["/api/status", "/api/telegram", "/api/config", "/api/doctor"].map(async (path) => (await daemon.fetch(path)).text()),
  );
  const logs = readdirSync(join(home, "logs")).map((name) => readFileSync(join(home, "logs", name), "utf8"));
  const prompts = model.bodies.map(String);
  for (const text of [...answers, ...logs, daemon.output(), ...prompts]) expect(text).not.toContain("AAE-scripted");
  expect(existsSync(join(home, "files", "main", "a.txt"))).toBe(true);
  expect(filesBelow(join(home, "files"))).toHaveLength(1);
});
