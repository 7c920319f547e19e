import { expect, test } from "vitest";
import type { Provider } from "../../../support/providers/core.ts";
import { startOllama } from "../../../support/providers/ollama.ts";
import { errorOf, eventsOf, post } from "../../../support/providers/talk.ts";

const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];
const chat = (server: Provider, body: Record<string, unknown>) =>
  post(`${server.url}/chat/completions`, { messages: [{ role: "user", content: "Hello" }], ...body });
const read = async (server: Provider, path: string) => (await fetch(server.origin + path)).json();

test("Ollama lists names with tags, embedders among them, and answers to a name without one", async () => {
  const server = await startOllama();
  const { models } = (await read(server, "/api/tags")) as { models: { name: string }[] };
  expect(models.map(({ name }) => name)).toEqual(["nomic-embed-text:latest", "llama3.2:latest", "gemma3:1b", "qwen3:8b"]);
  expect(await read(server, "/api/ps")).toEqual({ models: [] });
  expect(JSON.parse((await chat(server, { model: "llama3.2" })).text).model).toBe("llama3.2");
  expect(await read(server, "/api/ps")).toMatchObject({ models: [{ name: "llama3.2:latest", context_length: 4_096 }] });
  const shown = await post(`${server.origin}/api/show`, { model: "llama3.2" });
  expect(JSON.parse(shown.text)).toMatchObject({
    capabilities: ["completion", "tools"],
    model_info: { "llama.context_length": 131_072 },
  });
});

test.each([
  ["nomic-embed-text", {}, 400, '"nomic-embed-text" does not support chat'],
  ["gemma3:1b", { tools }, 400, "registry.ollama.ai/library/gemma3:1b does not support tools"],
  ["llama3.2", { reasoning_effort: "medium" }, 400, '"llama3.2" does not support thinking'],
  ["mistral", {}, 404, 'model "mistral" not found, try pulling it first'],
])("Ollama refuses %s with %j", async (model, body, status, message) => {
  const server = await startOllama();
  const answer = await chat(server, { model, ...body });
  expect([answer.status, errorOf(answer).message]).toEqual([status, message]);
});

test("Ollama drops the beginning of what is longer than its window, and says nothing", async () => {
  const server = await startOllama({ models: { "llama3.2:latest": { loadedContext: 100 } } });
  const old = { role: "user", content: "the first fact ".repeat(20) };
  const messages = [
    { role: "system", content: "Be good." },
    old,
    { role: "assistant", content: "Yes." },
    { role: "user", content: "And now?" },
  ];
  expect((await chat(server, { model: "llama3.2", messages })).status).toBe(200);
  expect(server.requests.at(-1)?.silently).toBe("dropped 1 of 4 messages to fit 100 tokens");
  expect(server.asked[0]?.body.messages).toEqual([messages[0], messages[2], messages[3]]);
});

test("Ollama sends a call in one piece", async () => {
  const server = await startOllama({ script: () => ({ call: [{ tool: "look", args: { at: "a rather long place" } }] }) });
  const events = eventsOf((await chat(server, { model: "llama3.2", stream: true, tools })).text);
  expect(events[1]).toMatchObject({
    choices: [{ delta: { tool_calls: [{ index: 0, function: { name: "look", arguments: '{"at":"a rather long place"}' } }] } }],
  });
});
