import { describe, expect, test } from "vitest";
import type { Status } from "../../../src/protocol/api.ts";
import { runIo } from "../../support/daemon.ts";
import { lastUserText } from "../../support/model.ts";
import { startBotApi } from "../../support/telegram/bot-api.ts";
import { telegramOf, telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

/** An answer whose second part ends it before its first part would be updated. */
const inTwoParts = { say: ["**One** ", "and two"], gapMs: 1_000 };
const refusal = (description: string, status = 400) =>
  ({ kind: "refuse", status, description: `Bad Request: ${description}` }) as const;

describe("what Telegram refuses", () => {
  test("a change that it cannot read as HTML is made as plain text", async () => {
    const { api, owner } = await telegraphed(() => inTwoParts);
    api.fail("editMessageText", refusal("can't parse entities: whatever"));
    owner.send("go");
    const beginning = await owner.sees(/^One$/);
    expect(beginning.entities).toMatchObject([{ type: "bold" }]);
    await until("the end", () => beginning.text === "One and two");
    expect(beginning.entities).toEqual([]);
    expect(owner.shown()).toHaveLength(1);
  });

  test("a change that it will not have becomes a message of its own, and an answer that nobody could see is told of", async () => {
    const { api, owner, daemon } = await telegraphed((request) =>
      lastUserText(request).includes("nothing") ? { say: "\u200b" } : inTwoParts,
    );
    api.fail("editMessageText", refusal("whatever it is"), 2);
    owner.send("go");
    await owner.sees(/^One and two$/);
    expect(owner.shown().map(({ text }) => text)).toEqual(["One", "One and two"]);
    owner.send("say nothing");
    await owner.sees(/^Telegram refuses to show some of this answer\..*io conversation show main$/);
    await until("nothing to be owed", async () => (await daemon.json<Status>("GET", "/api/status")).queue.owed === 0);
    expect(owner.shown()).toHaveLength(3);
  });

  test("a topic that cannot be made is told of, and what follows is answered", async () => {
    const api = await startBotApi();
    api.chats.state.topicsEnabled = true;
    const { owner } = await telegraphed(undefined, { api });
    api.fail("createForumTopic", refusal("not enough rights to create a topic"));
    api.fail("pinChatMessage", refusal("not enough rights to manage pinned messages in the chat"));
    owner.send("/new garden");
    owner.send("and now?");
    await owner.sees(/^You said: and now\?$/);
    await owner.sees(/^Telegram refuses this: 400 Bad Request: not enough rights to create a topic$/);
    owner.send("/status pin");
    await owner.sees(/^Telegram refuses this: 400 Bad Request: not enough rights to manage/);
  });

  test("what can never be fetched holds nothing up, and the user is told", async () => {
    const { api, owner } = await telegraphed();
    api.fail("getFile", refusal("no such right", 403), 3);
    owner.attach({ kind: "document", content: Buffer.from("x"), name: "a.txt" });
    owner.send("next");
    await owner.sees(/^You said: next$/, 30_000);
    expect((await owner.sees(/^This could not be handled\..*Send it again/)).silent).toBe(true);
  });
});

test("a user who blocked the bot: the answer is tried once, holds nothing up, status and doctor say so until they are back", async () => {
  const { api, owner, daemon, home } = await telegraphed();
  owner.send("one");
  await owner.sees(/^You said: one$/);
  owner.send("two");
  owner.send("three");
  api.chats.blocked.add(owner.id);
  const told = await until("the status to tell", async () => (await telegramOf(daemon)).detail ?? undefined);
  expect(told).toMatch(/^Telegram takes nothing for the user since .* UTC \(Forbidden: bot was blocked by the user\)\. Unblock/);
  await until("nothing to be owed", async () => (await daemon.json<Status>("GET", "/api/status")).queue.owed === 0);
  await until("the last of it", async () => (await daemon.json<Status>("GET", "/api/status")).queue.running === 0);
  const tried = api.calls.filter(({ method, payload }) => method === "sendMessage" && /three/.test(String(payload.text)));
  expect(tried.length).toBeLessThanOrEqual(1);
  expect((await telegramOf(daemon)).state).toBe("connected");
  expect((await runIo(["status"], home)).stdout).toMatch(/Telegram: connected since .*blocked by the user/);
  const { items } = JSON.parse((await runIo(["doctor", "--json"], home)).stdout) as { items: { check: string; state: string }[] };
  expect(items.find(({ check }) => check === "telegram")).toMatchObject({ state: "warning" });

  api.chats.blocked.clear();
  owner.send("back again");
  await owner.sees(/^You said: back again$/);
  expect(await telegramOf(daemon)).toMatchObject({ state: "connected", detail: null });
});
