import { gzipSync } from "node:zlib";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { startRawStream } from "../../support/raw-stream.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let model: ModelServer;
let daemon: TestDaemon;
let client: OpenAI;
let answers = 0;
/** Each lets the model continue one answer that it holds back. */
const held: (() => void)[] = [];
beforeAll(async () => {
  const play = async (request: ChatRequest) => {
    answers += 1;
    if (lastUserText(request).includes("slowly")) await new Promise<void>((go) => held.push(go));
    return { say: `Answer ${answers} to ${lastUserText(request).split("] ").at(-1)!.slice(0, 40)}` };
  };
  model = await scriptedModel(play, undefined, atTheEnd);
  daemon = await startDaemonProcess(temporaryHome({ mode: "auto" }, atTheEnd), providerEnvironment(model.url), atTheEnd);
  client = new OpenAI({ apiKey: daemon.token, baseURL: `${daemon.url}/v1` });
});

type Said = OpenAI.ChatCompletionMessageParam;
const user = (content: string): Said => ({ role: "user", content });
const assistant = (content: string): Said => ({ role: "assistant", content });

async function say(messages: Said[], more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {}, headers = {}) {
  const asking = client.chat.completions.create({ model: "io", messages, ...more }, { headers });
  const { data, response } = await asking.withResponse();
  return { reply: data.choices[0]?.message.content ?? "", conversation: response.headers.get("x-io-conversation") };
}

test("chats that begin with the same words are each continued in their own conversation", async () => {
  const chats = [];
  for (let chat = 0; chat < 3; chat += 1) chats.push({ ...(await say([user("hi")])), said: [user("hi")] });
  expect(new Set(chats.map(({ conversation }) => conversation)).size).toBe(3);
  for (const round of [1, 2])
    for (const chat of chats) {
      chat.said.push(assistant(chat.reply), user(`go on, ${round}`));
      const { reply, conversation } = await say(chat.said);
      expect(conversation).toBe(chat.conversation);
      chat.reply = reply;
    }
  // Once a chat has moved on, its beginning with a different next message is a new conversation.
  const branch = await say([user("hi"), chats[0]!.said[1]!, user("another way")]);
  expect(chats.map(({ conversation }) => conversation)).not.toContain(branch.conversation);
});

test("a history of megabytes is answered, its newest part goes along, and nobody else waits for it", async () => {
  const history = Array.from({ length: 3_000 }, (_, index) => {
    const words = `line ${index}. ${"word ".repeat(600)}`;
    return index % 2 === 0 ? user(words) : assistant(words);
  });
  // The daemon's event loop is watched: a long pause fails this file.
  await say([...history, user("after all that")]);
  const seen = model.requests.findLast((request) => lastUserText(request).includes("after all that"));
  const texts = seen!.messages.map(textOf).join("\n");
  expect(texts).toContain("line 2999.");
  expect(texts).not.toContain("line 0.");
});

test("the tools of a client that brings hundreds along are taken, and so is a list of allowed ones that forces none", async () => {
  const properties = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`field${index}`, { type: "string" }]));
  const tools = Array.from({ length: 200 }, (_, index) => ({
    type: "function" as const,
    function: { name: `tool${index}`, parameters: { type: "object", properties } },
  }));
  expect((await say([user("many tools")], { tools })).reply).toContain("many tools");
  const allowed = (mode: "auto" | "required") =>
    say([user("allowed tools")], { tool_choice: { type: "allowed_tools", allowed_tools: { mode, tools: [] } } });
  expect((await allowed("auto")).reply).toContain("allowed tools");
  await expect(allowed("required")).rejects.toMatchObject({ status: 400, param: "tool_choice" });
  const asking = client.responses.create({
    ...{ model: "io", input: "allowed in a response" },
    tool_choice: { type: "allowed_tools", mode: "auto", tools: [] },
  });
  expect((await asking).output_text).toContain("allowed in a response");
});

test("a text that no message may have is refused by its part, and an empty chat id is none", async () => {
  const long = "word ".repeat(200_001);
  await expect(say([user(long)])).rejects.toMatchObject({ status: 400, param: "messages" });
  await expect(say([{ role: "system", content: long }, user("short")])).rejects.toMatchObject({ status: 400, param: "messages" });
  await expect(client.responses.create({ model: "io", input: long })).rejects.toMatchObject({ status: 400, param: "input" });
  const empty = { "X-OpenWebUI-Chat-Id": "" };
  const [first, second] = [await say([user("one")], {}, empty), await say([user("two")], {}, empty)];
  expect(first.conversation).toMatch(/^oa-/);
  expect(second.conversation).not.toBe(first.conversation);
});

test("of two clients that made the same request, one leaves and the other is answered; once both have gone, the work ends", async () => {
  const request = (words: string) => ({ model: "io", messages: [user(words)], stream: true as const });
  const leaver = startRawStream(daemon, request("slowly, for two"));
  await until("the model to be asked", () => held.length === 1);
  await until("the first to be answered", () => leaver.heard().includes("assistant"));
  const stream = await client.chat.completions.create(request("slowly, for two"));
  await leaver.leave();
  held[0]!();
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  expect(text).toContain("slowly, for two");
  expect(model.requests.filter((each) => lastUserText(each).includes("slowly, for two"))).toHaveLength(1);

  const both = [startRawStream(daemon, request("slowly, for none")), startRawStream(daemon, request("slowly, for none"))];
  await until("both to be answered", () => both.every(({ heard }) => heard().includes("assistant")));
  await until("the model to be asked again", () => held.length === 2);
  for (const each of both) await each.leave();
  const [, name] = /x-io-conversation: (\S+)/i.exec(both[0]!.heard()) ?? [];
  await until("the end of the work", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${name}`);
    return items[0]?.status === "cancelled";
  });
  held[1]!();
});

test("a client that gives up and asks again is answered, whether or not the first work has ended", async () => {
  for (const round of [1, 2, 3]) {
    const before = held.length;
    const request = { model: "io", messages: [user(`slowly, again ${round}`)] };
    const leaving = new AbortController();
    const left = client.chat.completions.create(request, { signal: leaving.signal }).catch(() => undefined);
    await until("the model to be asked", () => held.length > before);
    leaving.abort();
    await left;
    const asking = client.chat.completions.create(request);
    // Where the daemon has not yet noticed that the client left, the next try joins the first.
    const again = until("the model to be asked again", () => held.length > before + 1, 10_000);
    again.then(
      () => held[before + 1]!(),
      () => held[before]!(),
    );
    expect((await asking).choices[0]?.message.content).toContain(`again ${round}`);
    held[before]!();
  }
});

test("a response that is fetched says what its request said, and is streamed from its beginning", async () => {
  const asked = { model: "io", background: true, metadata: { ticket: "17" } };
  const first = await client.responses.create({ ...asked, input: "first, in the background" });
  const held1 = held.length;
  const second = await client.responses.create({ ...asked, input: "slowly, streamed later", previous_response_id: first.id });
  await until("the model to be asked", () => held.length > held1);
  const fields = { background: true, metadata: asked.metadata, previous_response_id: first.id };
  expect(await client.responses.retrieve(second.id)).toMatchObject({ ...fields, status: "in_progress" });

  const eventsOf = async (id: string) => {
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.retrieve(id, { stream: true })) {
      events.push(event);
      if (event.type === "response.created") held[held1]!();
    }
    return events;
  };
  for (const events of [await eventsOf(second.id), await eventsOf(second.id)]) {
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: { ...fields, output_text: expect.stringContaining("slowly, streamed later") },
    });
    const said = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
    expect(said).toContain("slowly, streamed later");
  }
  const later = client.responses.retrieve(second.id, { stream: true, starting_after: 3 });
  await expect(later).rejects.toMatchObject({ status: 400, code: "unsupported_parameter", param: "starting_after" });
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`key${index}`, "x"]));
  const tooMany = client.responses.create({ model: "io", input: "many", metadata: many });
  await expect(tooMany).rejects.toMatchObject({ status: 400, param: "metadata" });
});

test("a client that names earlier answers instead of repeating them goes on in their conversation, and an unknown one is refused", async () => {
  const begun = { role: "user" as const, content: "begun by reference" };
  const ask = (input: OpenAI.Responses.ResponseInput) => client.responses.create({ model: "io", input }).withResponse();
  const first = await ask([begun]);
  const [item] = first.data.output;
  const conversation = first.response.headers.get("x-io-conversation");
  for (const reference of [{ type: "item_reference" as const, id: item!.id! }, { id: item!.id! }]) {
    const { data, response } = await ask([begun, reference, { role: "user", content: "gone on" }]);
    expect(data.output_text).toContain("gone on");
    // Once it has moved on, the same history is a new conversation, which begins with all of it.
    if (reference.type) expect(response.headers.get("x-io-conversation")).toBe(conversation);
    else expect(JSON.stringify(model.requests.at(-1))).toContain(first.data.output_text);
  }
  const unknown = ask([begun, { type: "item_reference", id: "msg_m_nothing" }, { role: "user", content: "x" }]);
  await expect(unknown).rejects.toMatchObject({ status: 400, code: "item_not_found", param: "input" });
});

test("a packed body, and one in another charset, are refused with 415", async () => {
  const body = JSON.stringify({ model: "io", messages: [user("packed")] });
  const send = (path: string, headers: object, sent: BodyInit) =>
    daemon.fetch(path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: sent });
  const packed = await send("/v1/chat/completions", { "content-encoding": "gzip" }, gzipSync(body));
  expect([packed.status, await packed.json()]).toMatchObject([415, { error: { param: null } }]);
  expect(packed.headers.get("x-should-retry")).toBe("false");
  const charset = { "content-type": "application/json; charset=latin1" };
  expect((await send("/v1/responses", charset, Buffer.from(body, "latin1"))).status).toBe(415);
  expect((await send("/mcp", { "content-encoding": "gzip" }, gzipSync("{}"))).status).toBe(415);
});
