import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import type { Status } from "../../../src/protocol/api.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../../support/daemon.ts";
import { temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { filesBelow, inDatabase } from "../../support/orchestrator.ts";
import { startBotApi } from "../../support/telegram/bot-api.ts";
import { echo, isConnected, telegramConfig, telegramOf, telegraphed } from "../../support/telegram/daemon.ts";
import { createPerson } from "../../support/telegram/person.ts";
import { until } from "../../support/until.ts";

async function unpaired() {
  const api = await startBotApi();
  const home = temporaryHome(telegramConfig(api));
  const model = await scriptedModel((request, ...more) =>
    /slowly/.test(lastUserText(request)) ? { say: "You said: slowly", delayMs: 4_000 } : echo(request, ...more),
  );
  const start = () => startDaemonProcess(home, providerEnvironment(model.url), onTestFinished);
  const daemon = await start();
  await isConnected(daemon);
  return { api, home, daemon, model, start, io: (...args: string[]) => runIo(args, home) };
}
/** Or slightly less, because the test takes some time. */
const isInAnHour = (at: string) => Math.abs(Date.parse(at) - Date.now() - 3_570_000) <= 30_000;
const codeIn = (text: string) => /Your code: ([A-Z0-9]{8})\n/.exec(text)?.[1];

test("/start gives a code, the terminal takes it, and only then is anybody served, by their id", async () => {
  const { api, daemon, home, model, io } = await unpaired();
  const olga = createPerson(api, 1_001, "Olga");
  const eve = createPerson(api, 1_002, "Eve");
  olga.send("hello before");
  await olga.sees(/^This bot is private\.$/);
  olga.send("/start");
  const code = codeIn((await olga.sees(/Your code/)).text)!;
  eve.send("/start");
  const other = codeIn((await eve.sees(/Your code/)).text)!;
  expect(other).not.toBe(code);
  // While nobody is paired, every /start is answered, with the same code for the same person.
  olga.send("/start");
  await until("the second answer", () => olga.shown().filter(({ text }) => codeIn(text) === code).length === 2);

  const paired = await io("telegram", "pair", code.toLowerCase());
  expect(paired).toMatchObject({ code: 0, stdout: expect.stringContaining("Olga (Telegram id 1001)") });
  await olga.sees(/You are paired with IO/);
  olga.send("hello");
  await olga.sees(/^You said: hello$/);
  // Once somebody is paired, codes given to others are worthless, whoever forwards them.
  expect(await io("telegram", "pair", other)).toMatchObject({ code: 1, stderr: expect.stringContaining("serves Olga already") });
  olga.send(`pair ${other}`);
  await olga.sees(/You said: pair/);
  eve.send("let me in, swordfish");
  eve.send("/start");
  eve.send("again, swordfish");
  await eve.sees(/^This bot is private\.$/);
  await until("Eve to be counted", async () => (await telegramOf(daemon)).strangers.messages >= 4);
  expect(eve.shown().map(({ text }) => codeIn(text) ?? text)).toEqual([other, "This bot is private."]);
  expect(JSON.stringify(model.bodies) + daemon.output()).not.toContain("swordfish");
  for (const path of filesBelow(home)) expect([path, readFileSync(path).includes("swordfish")]).toEqual([path, false]);
  const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
  expect(items.map(({ source }) => source)).toEqual(items.map(() => ({ channel: "telegram", chatId: 1_001 })));

  const status = await io("telegram", "status");
  expect(status.stdout).toMatch(/Serves: Olga \(Telegram id 1001\), by pairing/);
  expect(status.stdout).toMatch(/Strangers: 2/);
  expect(await io("telegram", "unpair")).toMatchObject({ code: 0 });
  olga.send("still me?");
  await until("Olga to be a stranger", async () => (await telegramOf(daemon)).strangers.messages >= 5);
  expect((await daemon.json<{ items: Message[] }>("GET", "/api/messages")).items).toHaveLength(items.length);
});

test("three codes wait at most, each holds for an hour and for one use", async () => {
  const { api, home, daemon, io } = await unpaired();
  const people = [1, 2, 3, 4].map((id) => createPerson(api, 2_000 + id));
  const codes: string[] = [];
  for (const person of people.slice(0, 3)) {
    person.send("/start");
    codes.push(codeIn((await person.sees(/Your code/)).text)!);
  }
  people[3]!.send("/start");
  await people[3]!.sees(/No code can be given/);
  expect((await telegramOf(daemon)).pending).toBe(3);
  const ends = inDatabase(home, (db) => db.prepare("SELECT expires_at AS at FROM telegram_codes").all() as { at: string }[]);
  for (const { at } of ends) expect(isInAnHour(at)).toBe(true);

  inDatabase(home, (db) =>
    db.prepare("UPDATE telegram_codes SET expires_at = '2020-01-01T00:00:00.000Z' WHERE code = ?").run(codes[0]!),
  );
  expect(await io("telegram", "pair", codes[0]!)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("older than an hour"),
  });
  expect(await io("telegram", "pair", codes[1]!)).toMatchObject({ code: 0 });
  await io("telegram", "unpair");
  expect(await io("telegram", "pair", codes[1]!)).toMatchObject({ code: 1 });
  expect(await io("telegram", "pair", codes[2]!)).toMatchObject({ code: 1 });
});

test("five wrong codes lock the pairing for an hour, over a restart too", async () => {
  const { api, home, daemon, start, io } = await unpaired();
  const olga = createPerson(api, 3_001);
  olga.send("/start");
  const code = codeIn((await olga.sees(/Your code/)).text)!;
  const said: string[] = [];
  for (let tries = 0; tries < 5; tries += 1) said.push((await io("telegram", "pair", `WRONG00${tries}`)).stderr);
  expect(said.map((words) => /no code that is waiting/.test(words))).toEqual([true, true, true, true, false]);
  expect(isInAnHour((await telegramOf(daemon)).lockedUntil!)).toBe(true);
  await daemon.kill("SIGTERM");
  await start();
  expect(await io("telegram", "pair", code)).toMatchObject({ code: 1, stderr: expect.stringContaining("Too many wrong codes") });
  inDatabase(home, (db) =>
    db
      .prepare("UPDATE io_state SET value = ? WHERE key = 'telegram:wrong-codes'")
      .run(JSON.stringify({ count: 5, lockedUntil: "2020-01-01T00:00:00.000Z" })),
  );
  expect(await io("telegram", "pair", "WRONG009")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("no code that is waiting"),
  });
  expect(await io("telegram", "pair", code)).toMatchObject({ code: 0 });
});

test("with authorizedUserId nobody is given a code, and in a group even the owner is not heard", async () => {
  const { api, daemon, owner, home } = await telegraphed();
  const eve = createPerson(api, 666);
  eve.send("/start");
  await eve.sees(/^This bot is private\.$/);
  const group = createPerson(api, owner.id, "Olga", { id: -500, type: "supergroup" });
  group.send("do something here");
  // A message from another person does not count as the owner's because it arrives in the owner's chat.
  createPerson(api, 666, "Eve", { id: owner.id, type: "private" }).send("do something in her name");
  owner.send("and here");
  await owner.sees(/^You said: and here$/);
  expect(group.shown()).toEqual([]);
  expect((await telegramOf(daemon)).strangers).toEqual({ people: 1, messages: 2 });
  expect((await daemon.json<{ items: Message[] }>("GET", "/api/messages")).items.map(({ text }) => text)).toEqual(["and here"]);
  expect(await runIo(["telegram", "pair", "ABCD1234"], home)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("authorizedUserId"),
  });
  expect(JSON.parse((await runIo(["telegram", "status", "--json"], home)).stdout)).toMatchObject({
    state: "connected",
    bot: "io_test_bot",
    user: { id: owner.id, by: "config" },
  });
});

test("whoever is served no more is told nothing more and heard no more: neither the answer that was being written, nor what waits to be taken, nor the pinned status", async () => {
  const { api, home, daemon, model, io } = await unpaired();
  const olga = createPerson(api, 1_001, "Olga");
  olga.send("/start");
  await io("telegram", "pair", codeIn((await olga.sees(/Your code/)).text)!);
  olga.send("/status pin");
  await until("the pin", () => olga.shown().find((each) => each.pinned));
  olga.send("slowly, please");
  await until("the model to be asked", () => model.requests.length === 1);
  api.fail("getFile", { kind: "status", status: 500 }, 1_000);
  olga.attach({ kind: "document", content: Buffer.from("x"), name: "late.txt" });
  await until("the update to be taken", () => api.updates.waiting() === 0);
  await io("telegram", "unpair");
  const [message] = await until("the end", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
    return items.every(({ status }) => status === "done") ? items : undefined;
  });
  expect(message!.reply).toBe("You said: slowly");
  api.faults.clear();
  const waiting = () => inDatabase(home, (db) => db.prepare("SELECT 1 FROM telegram_updates WHERE state = 'waiting'").get());
  await until("all to be handled", () => waiting() === undefined);
  expect((await daemon.json<{ items: Message[] }>("GET", "/api/messages")).items).toHaveLength(1);
  await until("nothing to be owed", async () => (await daemon.json<Status>("GET", "/api/status")).queue.owed === 0);
  const pinned = () => inDatabase(home, (db) => db.prepare("SELECT 1 FROM io_state WHERE key = 'telegram:pinned'").get());
  await until("the pin to be given up", () => pinned() === undefined, 20_000);
  expect(olga.shown().filter(({ text }) => /^You said/.test(text))).toEqual([]);
});

test("switched on and off while the daemon runs, and off it says how to begin", async () => {
  const api = await startBotApi();
  const home = temporaryHome({});
  const model = await scriptedModel(echo);
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  expect((await runIo(["telegram", "status"], home)).stdout).toMatch(/Telegram is off\. Make a bot with @BotFather/);
  expect(api.calls).toEqual([]);
  const follower = await daemon.follow();
  await daemon.json("PATCH", "/api/config", { ...telegramConfig(api), authorizedUserId: 77 });
  await isConnected(daemon);
  const olga = createPerson(api, 77);
  olga.send("hello");
  await olga.sees(/^You said: hello$/);
  await daemon.json("PATCH", "/api/config", { telegramEnabled: false });
  await until("it to be off", async () => (await telegramOf(daemon)).state === "off");
  expect(follower.of("channel.changed").map(({ body }) => body.state)).toEqual(["starting", "connected", "off"]);
});
