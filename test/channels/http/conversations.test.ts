import { mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { ConversationInfo, ConversationList } from "../../../src/protocol/conversations.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { until } from "../../support/until.ts";

const home = temporaryHome({}, afterAll);
const model = await scriptedModel(
  (request) => (lastUserText(request).includes("wait for ever") ? { hang: true } : { say: `Heard: ${lastUserText(request)}` }),
  { models: ["scripted", "other-model"] },
  afterAll,
);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
const folder = realpathSync(temporaryFolder(afterAll));
const io = (...args: string[]) => runIo(args, home);
const patch = (name: string, changes: object) => daemon.json<ConversationInfo>("PATCH", `/api/conversations/${name}`, changes);
const get = (name: string) => daemon.json<ConversationInfo>("GET", `/api/conversations/${name}`);
const refused = async (method: string, path: string, body?: unknown) => {
  const response = await daemon.fetch(path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  return [response.status, ((await response.json()) as { error: { message: string } }).error.message] as const;
};
const status = async (id: string) => (await daemon.json<Message>("GET", `/api/messages/${id}`)).status;
const send = async (text: string, conversation: string) =>
  (await daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation })).id;

test("a conversation is made by its settings, keeps them, and lists them", async () => {
  const project = join(folder, "app");
  mkdirSync(project);
  symlinkSync(project, join(folder, "by-link"));
  const made = await patch("plans", {
    folder: join(folder, "by-link"),
    title: " The plans ",
    mode: "plan",
    model: "Other Model",
  });
  const settings = { folder: project, title: "The plans", mode: "plan", model: "other-model" };
  expect(made).toEqual({
    ...{ name: "plans", ...settings, lastMessageAt: null, unread: 0, running: 0, waiting: 0, messages: 0 },
  });
  expect(await patch("plans", { mode: null })).toEqual({ ...made, mode: null });
  await daemon.ask({ text: "what is next?", conversation: "plans" });
  const { items } = await daemon.json<ConversationList>("GET", `/api/conversations?folder=${encodeURIComponent(project)}`);
  expect(items).toEqual([{ ...made, mode: null, messages: 1, lastMessageAt: expect.any(String), unread: 1 }]);
  expect(await daemon.json("GET", "/api/conversations?q=THE+PLANS")).toEqual({ items });
  expect(await daemon.json("GET", "/api/conversations?q=100%25")).toEqual({ items: [] });
});

test("a folder, mode or model that is not there is refused, and nothing is changed by it", async () => {
  writeFileSync(join(folder, "file"), "");
  const path = "/api/conversations/untouched";
  const told = async (changes: object) => (await refused("PATCH", path, { title: "No", ...changes })).join(" ");
  expect(await told({ folder: join(folder, "nowhere") })).toMatch(/^400 .*there is no such folder/);
  expect(await told({ folder: join(folder, "file") })).toMatch(/^400 .*is not a folder/);
  expect(await told({ folder: "app" })).toMatch(/^400 .*not a whole path/);
  expect(await told({ folder: home })).toMatch(/^400 .*data folder/);
  expect(await told({ folder: "/proc/self" })).toMatch(/^400 .*not a project/);
  expect(await told({ mode: "yolo" })).toMatch(/^400 mode: must be one of "plan", "ask", "auto", "full"/);
  expect(await told({ model: "no-such-model" })).toMatch(
    /^400 model: no model is called "no-such-model". Available: scripted, other-model/,
  );
  expect(await told({ model: "" })).toMatch(/^400 /);
  expect(await told({ colour: "red" })).toMatch(/^400 colour: there is no such field/);
  expect((await refused("PATCH", "/api/conversations/no%20name", {}))[0]).toBe(400);
  expect(await refused("GET", path)).toEqual([404, expect.stringContaining("There is no conversation called untouched")]);
  expect((await refused("DELETE", path))[0]).toBe(404);
});

test("a title is one line, whatever stood in it", async () => {
  const { title } = await daemon.json<ConversationInfo>("PATCH", "/api/conversations/lines", {
    title: "one\r\ntwo\u0007\u2028 \u{1F469}\u200D\u{1F4BB}",
  });
  expect(title).toBe("one two \u{1F469}\u200D\u{1F4BB}");
  expect(await refused("PATCH", "/api/conversations/lines", { title: "\u0001" })).toEqual([400, "title: must not be empty"]);
});

test("the title is the first message's words, shortened, until a person gives one", async () => {
  const asked = model.requests.length;
  const words = `Please rename\n every   \u202evariable ${"of this long list ".repeat(10)}`;
  await daemon.ask({ text: words, conversation: "titled" });
  await daemon.ask({ text: "and something else", conversation: "titled" });
  const { title } = await get("titled");
  expect(title).toMatch(/^Please rename every variable of this long list .*…$/);
  expect(title!.length).toBeLessThanOrEqual(60);
  expect(await io("conversation", "rename", "titled", "Renaming")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('"Renaming"'),
  });
  expect((await get("titled")).title).toBe("Renaming");
  await io("conversation", "rename", "titled", "");
  expect((await get("titled")).title).toBe(title);
  expect(model.requests.length - asked).toBe(2);
});

test("the model of a conversation answers in it, and in no other", async () => {
  await patch("chosen", { model: "other-model" });
  const chosen = await daemon.ask({ text: "who are you?", conversation: "chosen" });
  expect(model.requests.at(-1)?.model).toBe("other-model");
  expect(chosen.route).toMatchObject({ modelReason: expect.stringContaining("chosen for this conversation") });
  await daemon.ask({ text: "who are you?", conversation: "unchosen" });
  expect(model.requests.at(-1)?.model).toBe("scripted");
  await patch("chosen", { model: null });
  await daemon.ask({ text: "and now?", conversation: "chosen" });
  expect(model.requests.at(-1)?.model).toBe("scripted");
});

test("unread counts the answers since somebody looked; opening the conversation or following it clears it", async () => {
  await daemon.ask({ text: "one", conversation: "news" });
  await daemon.ask({ text: "two", conversation: "news" });
  expect(await get("news")).toMatchObject({ unread: 2 });
  const everything = await daemon.follow();
  await daemon.ask({ text: "three", conversation: "news" });
  expect(await get("news")).toMatchObject({ unread: 3 });
  await daemon.json("GET", "/api/messages?conversation=news&limit=1");
  expect(await get("news")).toMatchObject({ unread: 0 });
  await until("news of it", () =>
    everything.of("conversation.changed").some(({ body }) => body.name === "news" && body.unread === 0),
  );
  everything.leave();

  const open = await daemon.follow({ conversation: "news" });
  await daemon.ask({ text: "four", conversation: "news" });
  expect(await get("news")).toMatchObject({ unread: 0 });
  open.leave();
  await until("an answer that nobody follows", async () => {
    await daemon.ask({ text: "five", conversation: "news" });
    return (await get("news")).unread > 0;
  });
  (await daemon.follow({ conversation: "news" })).leave();
  await until("the answers to be seen", async () => (await get("news")).unread === 0);

  await daemon.ask({ text: "elsewhere", conversation: "other-news" });
  expect(await get("other-news")).toMatchObject({ unread: 1 });
  expect(await daemon.json("POST", "/api/conversations/other-news/seen")).toMatchObject({ unread: 0 });
});

test("a deleted conversation is gone with its messages, its sessions and its words; what waited or ran is cancelled", async () => {
  await daemon.ask({ text: "the secret word is marzipan", conversation: "doomed" });
  const running = await send("wait for ever", "doomed");
  const queued = await send("and then this", "doomed");
  await until("a turn that runs", async () => (await status(running)) === "running");
  expect(await get("doomed")).toMatchObject({ running: 1, waiting: 1 });
  const sessions = () => readdirSync(join(home, "sessions", "session-state")).filter((name) => name.startsWith("io-doomed"));
  expect(sessions()).toHaveLength(1);
  const followed = await daemon.follow();

  expect(await io("conversation", "delete", "doomed")).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
  const deleted = await io("conversation", "delete", "doomed", "--yes", "--json");
  expect(JSON.parse(deleted.stdout)).toEqual({ name: "doomed", messages: 3, cancelled: 2 });
  expect((await refused("GET", "/api/conversations/doomed"))[0]).toBe(404);
  for (const id of [running, queued]) expect((await refused("GET", `/api/messages/${id}`))[0]).toBe(404);
  expect(await daemon.json("GET", "/api/messages?conversation=doomed")).toEqual({ items: [] });
  expect(await daemon.json("GET", "/api/conversations/search?q=marzipan")).toEqual({ items: [] });
  expect(sessions()).toEqual([]);
  await until("the news", () => followed.of("conversation.deleted").some(({ body }) => body.name === "doomed"));
  followed.leave();
  const replayed = await daemon.follow({ lastEventId: "0" });
  await until("what is kept of the news", () => replayed.of("conversation.deleted").length > 0);
  expect(replayed.events.filter(({ data }) => data.includes("marzipan"))).toEqual([]);

  const answer = await daemon.ask({ text: "do you remember?", conversation: "doomed" });
  expect(answer.status).toBe("done");
  expect(JSON.stringify(model.requests.at(-1))).not.toContain("marzipan");
  expect(await get("doomed")).toMatchObject({ title: "do you remember?", messages: 1 });
});

test("a message that comes while its conversation is deleted begins another, and is answered", async () => {
  for (let count = 0; count < 3; count += 1) await daemon.ask({ text: `old ${count}`, conversation: "reborn" });
  const [deleted, message] = await Promise.all([
    daemon.json("DELETE", "/api/conversations/reborn"),
    daemon.ask({ text: "the first of the new", conversation: "reborn" }),
  ]);
  expect(deleted).toMatchObject({ name: "reborn" });
  // Depending on which came first, the message was answered, or cancelled with the others.
  if (message.status === "done") expect(await get("reborn")).toMatchObject({ messages: 1, title: "the first of the new" });
  else expect((await refused("GET", "/api/conversations/reborn"))[0]).toBe(404);
});

test("a conversation is exported whole, as Markdown and as JSON; one that is not there is an error", async () => {
  for (let count = 1; count <= 3; count += 1) await daemon.ask({ text: `line ${count}\n# no heading`, conversation: "kept" });
  const markdown = await io("conversation", "export", "kept");
  expect(markdown.stdout).toMatch(
    /^# line 1 # no heading\n\nConversation `kept`, 3 messages\.\n\n## .*, via api\n\n> line 1\n> # no heading\n\nHeard:/,
  );
  expect(markdown.stdout.indexOf("line 2")).toBeLessThan(markdown.stdout.indexOf("line 3"));
  const exported = JSON.parse((await io("conversation", "export", "kept", "--format", "json")).stdout);
  expect(exported).toMatchObject({
    name: "kept",
    messages: [{ status: "done" }, {}, { reply: expect.stringContaining("line 3") }],
  });
  for (const args of [["show"], ["export"], ["rename"], ["delete"]])
    expect(await io("conversation", ...args, "nowhere", ...(args[0] === "rename" ? ["x"] : []))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no conversation called nowhere"),
    });
  expect(await io("conversation", "show", "main")).toMatchObject({ code: 0 });
  expect(await io("conversation", "set", "kept", "--mode", "ask", "--folder", folder)).toMatchObject({ code: 0 });
  expect(await get("kept")).toMatchObject({ mode: "ask", folder });
  await io("conversation", "set", "kept", "--mode", "default", "--folder", "default");
  expect(await get("kept")).toMatchObject({ mode: null, folder: null });
});
