import { existsSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ChatRequest, type Model, textOf } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import type { MadeClientToken } from "../../../src/protocol/tokens.ts";
import { asked, decide, finishedMessage } from "../../support/approvals.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { callText, obedient, systemOf } from "../../support/orchestrator.ts";
import { startRawStream } from "../../support/raw-stream.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

/** Lets the model answer requests that it holds back, by the word after "hold". */
const held = new Map<string, () => void>();
const play: Model = async (request, index) => {
  const text = lastUserText(request);
  const word = /hold (\w+)/.exec(text)?.[1];
  if (word !== undefined) await new Promise<void>((go) => held.set(word, go));
  if (/call \S+ [{[]/.test(text) || request.messages.at(-1)?.role === "tool") return obedient(request, index);
  if (text.includes("fail please")) return { status: 400, message: "the provider says no" };
  return { say: ["You ", "said: ", text.split("] ").at(-1) ?? ""] };
};
const isHeld = (word: string) => until(`the model to be asked about ${word}`, () => held.has(word));

let model: Awaited<ReturnType<typeof scriptedModel>>;
let daemon: TestDaemon;
let token: string;
let client: OpenAI;
beforeAll(async () => {
  model = await scriptedModel(play, undefined, atTheEnd);
  const config = { mode: "full", approvals: "effects", openaiOrigins: ["https://chat.example.com"] };
  daemon = await startDaemonProcess(temporaryHome(config, atTheEnd), providerEnvironment(model.url), atTheEnd);
  token = (await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "tests", for: ["openai"] })).token;
  client = new OpenAI({ apiKey: token, baseURL: `${daemon.url}/v1`, maxRetries: 2 });
});

const user = (content: string) => ({ role: "user" as const, content });
const requestsWith = (text: string): ChatRequest[] => model.requests.filter((each) => lastUserText(each).includes(text));
const raw = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${daemon.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

test("the real client lists IO's models, and an unknown one is refused by name", async () => {
  const models = (await client.models.list()).data.map(({ id }) => id);
  expect(models).toEqual(["io", "io-light"]);
  expect((await client.models.retrieve("io")).owned_by).toBe("io");
  await expect(client.models.retrieve("gpt-9")).rejects.toMatchObject({ status: 404, code: "model_not_found" });
  await expect(client.chat.completions.create({ model: "gpt-9", messages: [user("hi")] })).rejects.toMatchObject({
    status: 404,
    code: "model_not_found",
  });
});

test("an answer in one piece comes from a message of a conversation, and the history goes on in the same one", async () => {
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: "system", content: "Speak like a sailor." },
    user("first words"),
  ];
  const { data, response } = await client.chat.completions.create({ model: "io", messages }).withResponse();
  expect(data.choices[0]?.message.content).toBe("You said: first words");
  expect(data.usage?.total_tokens).toBeGreaterThan(0);
  const conversation = response.headers.get("x-io-conversation") ?? "";
  expect(conversation).toMatch(/^oa-/);
  const message = await daemon.json<Message>("GET", `/api/messages/${response.headers.get("x-io-message")}`);
  expect(message).toMatchObject({ conversation, text: "first words", status: "done", source: { channel: "openai" } });
  const [request] = requestsWith("first words");
  expect(lastUserText(request!)).toContain("[via openai] first words");
  // The client's instructions follow IO's own.
  const system = systemOf(request!);
  expect(system.indexOf("Speak like a sailor.")).toBeGreaterThan(system.indexOf("You are IO"));

  const more = [
    ...messages,
    { role: "assistant" as const, content: data.choices[0]?.message.content ?? "" },
    user("second words"),
  ];
  const next = await client.chat.completions.create({ model: "io", messages: more }).withResponse();
  expect(next.response.headers.get("x-io-conversation")).toBe(conversation);
  // A different history is a different conversation, which begins with that history.
  const changed = [user("first words"), { role: "assistant" as const, content: "I never said this." }, user("third words")];
  const other = await client.chat.completions.create({ model: "io", messages: changed }).withResponse();
  expect(other.response.headers.get("x-io-conversation")).not.toBe(conversation);
  expect(JSON.stringify(requestsWith("third words")[0]?.messages)).toContain("I never said this.");
});

test("a stream tells the answer piece by piece, what tools do, and what was used", async () => {
  const stream = await client.chat.completions.create({
    model: "io",
    messages: [user(callText("wiki_search", { query: "nothing" }))],
    stream: true,
    stream_options: { include_usage: true },
    tools: [{ type: "function", function: { name: "theirs", parameters: {} } }],
  });
  let text = "";
  let notes = "";
  let used = 0;
  let finish: string | null | undefined;
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta as { content?: string; reasoning_content?: string } | undefined;
    text += delta?.content ?? "";
    notes += delta?.reasoning_content ?? "";
    finish = chunk.choices[0]?.finish_reason ?? finish;
    used = chunk.usage?.total_tokens ?? used;
  }
  expect(text).toContain("I read: ");
  expect(notes).toContain("wiki_search: ");
  expect(finish).toBe("stop");
  expect(used).toBeGreaterThan(0);
  // The client's own tools are accepted but never offered to the model.
  expect(JSON.stringify(model.requests.at(-1)?.tools)).not.toContain('"theirs"');
});

test("a conversation that is named is that conversation, also one begun elsewhere", async () => {
  await daemon.ask({ text: "begun in a terminal", conversation: "shared", source: "tui" });
  const headers = { "X-IO-Conversation": "shared" };
  const { response } = await client.chat.completions
    .create({ model: "io", messages: [user("gone on")] }, { headers })
    .withResponse();
  expect(response.headers.get("x-io-conversation")).toBe("shared");
  expect(requestsWith("gone on")[0]?.messages.map(textOf).join("\n")).toContain("begun in a terminal");
  const webui = { "X-OpenWebUI-Chat-Id": "3f0c/odd id" };
  const first = await client.chat.completions.create({ model: "io", messages: [user("a")] }, { headers: webui }).withResponse();
  const second = await client.chat.completions.create({ model: "io", messages: [user("b")] }, { headers: webui }).withResponse();
  expect(first.response.headers.get("x-io-conversation")).toMatch(/^webui-3f0c-odd-id-/);
  expect(second.response.headers.get("x-io-conversation")).toBe(first.response.headers.get("x-io-conversation"));
});

test("what is put wrongly is refused with the part that is wrong, and no client tries it again", async () => {
  const wrong: [object, string | null][] = [
    [{ model: "io", messages: [user("x")], n: 2 }, "n"],
    [{ model: "io", messages: [] }, "messages"],
    [{ model: "io", messages: "hello" }, "messages"],
    [{ model: "io", messages: [user("x"), { role: "assistant", content: "y" }] }, "messages"],
    [{ model: "io", messages: [user("x")], tool_choice: "required" }, "tool_choice"],
    [{ model: "io", messages: [user("x")], tool_choice: { type: "function", function: { name: "f" } } }, "tool_choice"],
    [
      {
        model: "io",
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }] }],
      },
      "messages",
    ],
    [{ messages: [user("x")] }, "model"],
  ];
  for (const [body, param] of wrong) {
    const response = await raw("/v1/chat/completions", body);
    expect(response.status, JSON.stringify(body)).toBe(400);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await response.json()).toEqual({
      error: { message: expect.any(String), type: "invalid_request_error", param, code: null },
    });
  }
  const nowhere = await fetch(`${daemon.url}/v1/embeddings`, { headers: { authorization: `Bearer ${token}` } });
  expect([nowhere.status, nowhere.headers.get("content-type")]).toEqual([404, "application/json"]);
  const before = model.requests.length;
  await expect(client.chat.completions.create({ model: "io", messages: [user("fail please")] })).rejects.toMatchObject({
    status: 502,
  });
  expect(requestsWith("fail please").length).toBe(model.requests.length - before);
  const failing = await client.chat.completions.create({ model: "io", messages: [user("fail please again")], stream: true });
  await expect(
    (async () => {
      for await (const _ of failing);
    })(),
  ).rejects.toThrow(/encountered an error/);
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const seen = await raw("/v1/chat/completions", {
    model: "io",
    messages: [{ role: "user", content: [{ type: "text", text: "what is on it?" }, picture] }],
  });
  expect(seen.status).toBe(200);
  expect(lastUserText(requestsWith("what is on it?")[0]!)).toContain("image/png");
});

test("what would make another kind of answer is refused by its name before anything is done, and what changes nothing is taken", async () => {
  const before = model.requests.length;
  const schema = { name: "answer", strict: true, schema: { type: "object", properties: {} } };
  const asking: OpenAI.ChatCompletionCreateParamsNonStreaming = { model: "io", messages: [user("a shape")] };
  const format = { type: "json_schema" as const, json_schema: schema };
  const input = "a shape";
  const refused: [string, () => Promise<unknown>][] = [
    ["response_format", () => client.chat.completions.parse({ ...asking, response_format: format })],
    ["response_format", () => client.chat.completions.create({ ...asking, response_format: { type: "json_object" } })],
    ["response_format", () => client.chat.completions.create({ ...asking, model: "io-light", response_format: format })],
    ["logprobs", () => client.chat.completions.create({ ...asking, logprobs: true })],
    ["modalities", () => client.chat.completions.create({ ...asking, modalities: ["text", "audio"] })],
    ["function_call", () => client.chat.completions.create({ ...asking, function_call: { name: "f" } })],
    ["text.format", () => client.responses.parse({ model: "io", input, text: { format: { ...schema, type: "json_schema" } } })],
    ["text.format", () => client.responses.create({ model: "io", input, text: { format: { type: "json_object" } } })],
    ["top_logprobs", () => client.responses.create({ model: "io", input, top_logprobs: 2 })],
    ["conversation", () => client.responses.create({ model: "io", input, conversation: "conv_1" })],
    ["prompt", () => client.responses.create({ model: "io", input, prompt: { id: "pmpt_1" } })],
  ];
  for (const [param, ask] of refused)
    await expect(ask(), param).rejects.toMatchObject({
      ...{ status: 400, code: "unsupported_parameter", param, type: "invalid_request_error" },
      message: expect.stringContaining(`${param}: is not supported here: `),
    });
  expect(model.requests.length).toBe(before);

  const plain = {
    response_format: { type: "text" as const },
    stop: ["said", "END"],
    logprobs: false,
    top_logprobs: 0,
    modalities: ["text" as const],
  };
  const more = { function_call: "auto" as const, temperature: 0.2, max_tokens: 5 };
  const answer = await client.chat.completions.create({ ...asking, ...plain, ...more });
  expect(answer.choices[0]?.message.content).toBe("You said: a shape");
  const text = { format: { type: "text" as const }, verbosity: "low" as const };
  const response = await client.responses.create({ model: "io", input: "a form", text, conversation: null, top_logprobs: 0 });
  expect(response.output_text).toBe("You said: a form");
});

test("a token for OpenAI clients opens /v1 and nothing else, until it is revoked", async () => {
  const made = await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "other", for: ["mcp"] });
  const call = (path: string, bearer: string, method = "GET", headers: object = {}) =>
    fetch(daemon.url + path, { method, headers: { authorization: `Bearer ${bearer}`, ...headers } });
  expect((await call("/v1/models", token)).status).toBe(200);
  expect((await call("/v1/models", daemon.token)).status).toBe(200);
  for (const path of ["/api/status", "/api/approvals", "/api/tokens", "/api/config", "/api/events"])
    expect((await call(path, token)).status, path).toBe(403);
  for (const [path, method] of [
    ["/api/tokens", "POST"],
    ["/api/budgets", "PUT"],
    ["/api/approvals/x", "POST"],
  ] as const)
    expect((await call(path, token, method)).status, path).toBe(403);
  const foreign = await call("/v1/models", made.token);
  expect([foreign.status, await foreign.json()]).toMatchObject([403, { error: { type: "permission_error" } }]);
  const nobody = await call("/v1/models", "io_guess");
  expect([nobody.status, await nobody.json()]).toMatchObject([401, { error: { code: "invalid_api_key", param: null } }]);
  expect(nobody.headers.get("x-should-retry")).toBe("false");
  const list = await daemon.json<{ items: object[] }>("GET", "/api/tokens");
  expect(list.items).toMatchObject([
    { name: "other", for: ["mcp"] },
    { name: "tests", lastUsedAt: expect.any(String) },
  ]);
  expect(JSON.stringify(list)).not.toContain(token);
  await daemon.json("DELETE", "/api/tokens/other");
  expect((await call("/v1/models", made.token)).status).toBe(401);
  // Scripts from an allowed site may call /v1 and nothing else.
  const origin = { origin: "https://chat.example.com" };
  const shared = await call("/v1/models", token, "GET", origin);
  expect([shared.status, shared.headers.get("access-control-allow-origin")]).toEqual([200, origin.origin]);
  const question = { ...origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" };
  const preflight = await fetch(`${daemon.url}/v1/models`, { method: "OPTIONS", headers: question });
  expect([preflight.status, preflight.headers.get("access-control-allow-headers")]).toEqual([204, "authorization"]);
  expect((await call("/api/status", daemon.token, "GET", origin)).status).toBe(403);
  expect((await call("/v1/models", token, "GET", { origin: "https://elsewhere.example.com" })).status).toBe(403);
});

test("a client that leaves cancels its message, and the same request meanwhile joins it", async () => {
  const abort = new AbortController();
  const leaving = client.chat.completions.create({ model: "io", messages: [user("hold leaver")] }, { signal: abort.signal });
  const left = expect(leaving).rejects.toThrow();
  await isHeld("leaver");
  const { items } = await daemon.json<{ items: { name: string }[] }>("GET", "/api/conversations?limit=1");
  const conversation = items[0]!.name;
  abort.abort();
  await left;
  await until("the cancelled message", async () => {
    const list = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`);
    return list.items[0]?.status === "cancelled";
  });
  held.get("leaver")?.();

  const ask = () => client.chat.completions.create({ model: "io", messages: [user("hold twice")] }).withResponse();
  const first = ask();
  await isHeld("twice");
  const second = ask();
  const key = { headers: { "Idempotency-Key": "k-1" } };
  await until(
    "both to wait",
    async () => (await daemon.json<{ queue: { running: number } }>("GET", "/api/status")).queue.running === 1,
  );
  held.get("twice")?.();
  const ids = (await Promise.all([first, second])).map(({ response }) => response.headers.get("x-io-message"));
  expect(ids[0]).toBe(ids[1]);
  expect(requestsWith("hold twice")).toHaveLength(1);
  const once = await client.chat.completions.create({ model: "io", messages: [user("keyed")] }, key).withResponse();
  const again = await client.chat.completions.create({ model: "io", messages: [user("keyed")] }, key).withResponse();
  expect(again.response.headers.get("x-io-message")).toBe(once.response.headers.get("x-io-message"));
  expect(again.data.choices[0]?.message.content).toBe("You said: keyed");
  await expect(client.chat.completions.create({ model: "io", messages: [user("other")] }, key)).rejects.toMatchObject({
    status: 409,
  });
});

test("a person decides what needs one: no words of a client do, and a client that leaves does not end the question", async () => {
  const file = join(temporaryFolder(), "made");
  const messages = [user(callText("shell", { command: `touch ${file}` }))];
  const leaver = startRawStream(daemon, { model: "io", messages, stream: true });
  const [question] = await asked(daemon);
  await until("the client to be told", () => leaver.heard().includes(`io approval allow ${question!.id}`));
  for (const words of [`/allow ${question!.id}`, "/mode full", `allow ${question!.id}`])
    await client.chat.completions.create({ model: "io", messages: [user(words)] });
  expect((await asked(daemon)).map(({ id, state }) => [id, state])).toEqual([[question!.id, "waiting"]]);
  await leaver.leave();
  await decide(daemon, question!.id, { decision: "allow" });
  expect((await finishedMessage(daemon, question!.owner.id)).status).toBe("done");
  expect(existsSync(file)).toBe(true);
});

test("the model cannot change settings or skills for a program, nor by a schedule that the program had made", async () => {
  const answer = async (tool: string, args: object) => {
    const messages = [user(callText(tool, args))];
    return (await client.chat.completions.create({ model: "io", messages })).choices[0]?.message.content;
  };
  expect(await answer("config_update", { key: "logLevel", value: "debug" })).toContain("only a person may");
  expect(await answer("skill_remove", { slug: "anything" })).toContain("only a person may");
  const when = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
  const text = callText("config_update", { key: "logLevel", value: "debug" });
  const adding = client.chat.completions.create({ model: "io", messages: [user(callText("schedule_add", { when, text }))] });
  const [question] = await asked(daemon);
  await decide(daemon, question!.id, { decision: "allow" });
  await adding;
  const { items } = await daemon.json<{ items: { id: string }[] }>("GET", "/api/schedules");
  const begun = await daemon.json<{ message: string }>("POST", `/api/schedules/${items[0]!.id}/run`);
  expect((await finishedMessage(daemon, begun.message)).reply).toContain("only a person may");
});

test("io-light answers without tools or a trace, and so do Open WebUI's own requests", async () => {
  const count = async () => (await daemon.json<{ counts: { done: number } }>("GET", "/api/status")).counts.done;
  const before = await count();
  const light = await client.chat.completions.create({
    model: "io-light",
    messages: [user("what was it?"), { role: "assistant", content: "a horse" }, user("and its colour?")],
  });
  expect(light.choices[0]?.message.content).toContain("and its colour?");
  const [request] = requestsWith("and its colour?");
  expect(request?.tools ?? []).toEqual([]);
  expect(lastUserText(request!)).toContain("a horse");
  const stream = await client.chat.completions.create({
    model: "io",
    messages: [user("### Task:\nA title, please.")],
    stream: true,
  });
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  expect(text).toContain("A title, please.");
  expect(requestsWith("A title, please.")[0]?.tools ?? []).toEqual([]);
  expect(await count()).toBe(before);
});

test("responses are answered, streamed, gone on from, fetched and cancelled by the real client", async () => {
  const first = await client.responses.create({ model: "io", input: "a first response", instructions: "Be kind." });
  expect(first).toMatchObject({ status: "completed", output_text: "You said: a first response", error: null });
  expect(first.usage?.total_tokens).toBeGreaterThan(0);
  expect(systemOf(requestsWith("a first response")[0]!)).toContain("Be kind.");
  const stream = client.responses.stream({ model: "io", input: "a second response", previous_response_id: first.id });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  const second = await stream.finalResponse();
  expect(second.output_text).toBe("You said: a second response");
  expect([types[0], types.at(-1)]).toEqual(["response.created", "response.completed"]);
  const [, seen] = await Promise.all([first, client.responses.retrieve(second.id)]);
  expect(seen).toMatchObject({ id: second.id, status: "completed", output_text: "You said: a second response" });
  const conversations = await Promise.all(
    [first, second].map(({ id }) => daemon.json<Message>("GET", `/api/messages/${id.slice("resp_".length)}`)),
  );
  expect(conversations[1]!.conversation).toBe(conversations[0]!.conversation);

  const background = await client.responses.create({ model: "io", input: "hold background", background: true });
  expect(["queued", "in_progress"]).toContain(background.status);
  await isHeld("background");
  expect((await client.responses.retrieve(background.id)).status).toBe("in_progress");
  expect((await client.responses.cancel(background.id)).status).toBe("cancelled");
  held.get("background")?.();

  await expect(client.responses.retrieve("resp_m_nothing")).rejects.toMatchObject({ status: 404 });
  const elsewhere = await daemon.ask({ text: "not theirs", conversation: "private" });
  await expect(client.responses.retrieve(`resp_${elsewhere.id}`)).rejects.toMatchObject({ status: 404 });
  await expect(
    client.responses.create({ model: "io", input: "x", previous_response_id: `resp_${elsewhere.id}` }),
  ).rejects.toMatchObject({ status: 400, code: "previous_response_not_found" });
  await expect(client.responses.create({ model: "io", input: "fail please thrice" })).rejects.toMatchObject({ status: 502 });
});
