import { expect, test } from "vitest";
import type { Message } from "../../../src/protocol/messages.ts";
import { startBotApi } from "../../support/telegram/bot-api.ts";
import { OWNER, telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

async function withTopics() {
  const api = await startBotApi();
  api.chats.state.topicsEnabled = true;
  return telegraphed(undefined, { api });
}
const topic = (api: Awaited<ReturnType<typeof startBotApi>>, name: string) =>
  api.chats.createTopic({ chat_id: OWNER, name }).message_thread_id;

test("a topic is a conversation, its answers land in it, and the chat itself is main", async () => {
  const { api, owner, daemon } = await withTopics();
  const garden = topic(api, "garden");
  const house = topic(api, "house");
  owner.send("in the garden", { thread: garden });
  owner.send("in the house", { thread: house });
  owner.send("nowhere");
  owner.send("in general", { thread: 1 });
  await until("four answers", () => owner.shown().length === 4);
  const landed = owner.shown().map(({ text, thread }) => [text, thread]);
  expect(landed.sort()).toEqual(
    [
      ["You said: in general", undefined],
      ["You said: in the garden", garden],
      ["You said: in the house", house],
      ["You said: nowhere", undefined],
    ].sort(),
  );
  const conversation = async (name: string) =>
    (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${name}`)).items
      .map(({ text }) => text)
      .reverse();
  expect(await conversation(`topic-${garden}`)).toEqual(["in the garden"]);
  expect(await conversation(`topic-${house}`)).toEqual(["in the house"]);
  expect(await conversation("main")).toEqual(["nowhere", "in general"]);
});

test("/new makes a topic, and says there which conversation it is", async () => {
  const { api, owner } = await withTopics();
  owner.send("/new holiday plans");
  const greeting = await owner.sees(/^This is the conversation topic-\d+/);
  expect([...api.chats.topics.get(OWNER)!]).toEqual([[greeting.thread, "holiday plans"]]);
  owner.send("hello", { thread: greeting.thread! });
  expect((await owner.sees(/^You said: hello$/)).thread).toBe(greeting.thread);
});

test("an answer for a topic that was deleted comes to the chat itself and says so, whether Telegram refuses it or drops it there", async () => {
  const { api, owner } = await withTopics();
  const garden = topic(api, "garden");
  owner.send("one", { thread: garden });
  await owner.sees(/^You said: one$/);
  api.chats.topics.get(OWNER)!.delete(garden);
  owner.send("two", { thread: garden });
  expect(await owner.sees(/^\(from a topic that is gone\)\nYou said: two$/)).not.toHaveProperty("thread");
  api.chats.state.fallsToGeneral = true;
  owner.send("three", { thread: garden });
  await owner.sees(/^\(from a topic that is gone\)\nYou said: three$/);
  expect(owner.shown()).toHaveLength(3);
});
