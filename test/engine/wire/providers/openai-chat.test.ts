import { describe, expect, test } from "vitest";
import { startOpenAi } from "../../../support/providers/openai.ts";
import { bearer, chat, errorOf, eventsOf, post } from "../../../support/providers/talk.ts";

const tool = (name = "look", parameters: unknown = { type: "object", properties: {} }) => ({
  type: "function",
  function: { name, parameters },
});
const call = (id: string) => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
const unsupported = (name: string, hint = "") => `Unsupported parameter: '${name}' is not supported with this model.${hint}`;

const CASES: [model: string, body: Record<string, unknown>, message: string][] = [
  ["gpt-4o", { reasoning_effort: "medium" }, "Unrecognized request argument supplied: reasoning_effort"],
  ["gpt-3.5-turbo", { reasoning_effort: "none" }, "Unrecognized request argument supplied: reasoning_effort"],
  ["gpt-4.1-mini", { thinking: true }, "Unrecognized request argument supplied: thinking"],
  [
    "gpt-5-mini",
    { temperature: 0 },
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
  ],
  ["o3-mini", { temperature: 0 }, unsupported("temperature")],
  ["o4-mini", { top_p: 0.5 }, unsupported("top_p")],
  ["gpt-5", { presence_penalty: 0 }, unsupported("presence_penalty")],
  ["o1", { max_tokens: 10 }, unsupported("max_tokens", " Use 'max_completion_tokens' instead.")],
  ["o1-mini", { tools: [tool()] }, unsupported("tools")],
  ["o3-mini", { tools: [tool()], parallel_tool_calls: true }, unsupported("parallel_tool_calls")],
  [
    "gpt-5.1",
    { reasoning_effort: "minimal" },
    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'none', 'low', 'medium', and 'high'.",
  ],
  [
    "gpt-5.4",
    { reasoning_effort: "low", tools: [tool()] },
    "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
  ],
  [
    "gpt-5.6-terra",
    { tools: [tool()] },
    "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
  ],
  [
    "gpt-4o",
    { max_tokens: 20_480 },
    "max_tokens is too large: 20480. This model supports at most 16384 completion tokens, whereas you provided 20480.",
  ],
  [
    "gpt-4o",
    { tools: Array.from({ length: 150 }, () => tool()) },
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.",
  ],
  [
    "gpt-4o",
    { tools: [tool("look up")] },
    "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
  ],
  [
    "gpt-4o",
    { tools: [tool("look", { type: "object" })] },
    "Invalid schema for function 'look': In context=(), object schema missing properties.",
  ],
  [
    "gpt-4o",
    { tool_choice: "auto" },
    "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
  ],
  [
    "gpt-4o",
    { stream_options: { include_usage: true } },
    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
  ],
  [
    "gpt-4o",
    {
      messages: [
        { role: "assistant", content: null, tool_calls: [call("call_1")] },
        { role: "user", content: "?" },
      ],
    },
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
  ],
  [
    "gpt-4o",
    { messages: [{ role: "tool", tool_call_id: "call_1", content: "?" }] },
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
  ],
  [
    "gpt-4o",
    { messages: [{ role: "assistant", content: null, tool_calls: [call("x".repeat(41))] }] },
    "Invalid 'messages[0].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.",
  ],
  ["gpt-4o", { messages: [{ role: "user", content: null }] }, "Invalid value for 'content': expected a string, got null."],
];

describe("OpenAI's completions refuse", () => {
  test.each(CASES.map(([model, body, message]) => [model, message, body] as const))("%s: %s", async (model, message, body) => {
    const server = await startOpenAi();
    const answer = await chat(server, { model, ...body });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ message, type: "invalid_request_error" });
    expect(server.refusals()).toEqual([message]);
    expect(server.asked).toEqual([]);
  });

  test("a key that is wrong or missing, a model that is not there, and a path that is none", async () => {
    const server = await startOpenAi();
    const url = `${server.url}/chat/completions`;
    const body = { model: "gpt-4", messages: [{ role: "user", content: "Hello" }] };
    const wrong = await post(url, body, bearer("sk-proj-wrong-key-1234"));
    expect(wrong.status).toBe(401);
    expect(errorOf(wrong)).toMatchObject({
      message:
        "Incorrect API key provided: sk-proj-**********1234. You can find your API key at https://platform.openai.com/account/api-keys.",
      code: "invalid_api_key",
    });
    expect(errorOf(await post(url, body)).message).toMatch(/^You didn't provide an API key\./);
    expect(errorOf(await post(url, body, bearer()))).toEqual({
      message: "The model `gpt-4` does not exist or you do not have access to it.",
      ...{ type: "invalid_request_error", param: null, code: "model_not_found" },
    });
    expect(errorOf(await post(`${server.url}/v1/chat/completions`, body, bearer())).message).toBe(
      "Invalid URL (POST /v1/v1/chat/completions)",
    );
    expect(errorOf(await chat(server, { model: "gpt-5-codex" })).message).toBe(
      "This model is only supported in v1/responses and not in v1/chat/completions.",
    );
    expect(
      errorOf(await post(url, '{"model":"gpt-4o","messages":[{"role":"user","content":"\\ud83c"}]}', bearer())).message,
    ).toMatch(/^We could not parse the JSON body/);
  });

  test("more than the window holds, with what is in the messages and in the functions", async () => {
    const server = await startOpenAi({ models: { "gpt-4o": { window: 50 } } });
    const long = [{ role: "user", content: "x".repeat(400) }];
    expect(errorOf(await chat(server, { model: "gpt-4o", messages: long }))).toEqual({
      message:
        "This model's maximum context length is 50 tokens. However, your messages resulted in 108 tokens. Please reduce the length of the messages.",
      ...{ type: "invalid_request_error", param: "messages", code: "context_length_exceeded" },
    });
    expect(errorOf(await chat(server, { model: "gpt-4o", messages: long, tools: [tool()] })).message).toBe(
      "This model's maximum context length is 50 tokens. However, your messages resulted in 132 tokens (108 in the messages, 24 in the functions). Please reduce the length of the messages or functions.",
    );
    expect(errorOf(await chat(server, { model: "gpt-4o", max_tokens: 60 })).message).toBe(
      "This model's maximum context length is 50 tokens. However, you requested 69 tokens (9 in the messages, 60 in the completion). Please reduce the length of the messages or completion.",
    );
    expect(
      errorOf(await chat(server, { model: "gpt-5", messages: [{ role: "user", content: "x".repeat(1_100_000) }] })).message,
    ).toBe(
      "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 275008 tokens. Please reduce the length of the messages.",
    );
  });
});

describe("OpenAI's completions answer", () => {
  test("in chunks, with usage when it was asked for, under the name of the snapshot", async () => {
    const server = await startOpenAi({ script: () => ({ say: ["Good ", "day"] }) });
    const { text } = await chat(server, { model: "gpt-4o", stream: true, stream_options: { include_usage: true } });
    const events = eventsOf(text);
    expect(events.at(-1)).toBe("[DONE]");
    expect(events.at(-2)).toMatchObject({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } });
    expect(events.slice(0, -2)).toMatchObject([
      { model: "gpt-4o-2024-08-06", usage: null, choices: [{ delta: { role: "assistant", content: "" }, finish_reason: null }] },
      { choices: [{ delta: { content: "Good " } }] },
      { choices: [{ delta: { content: "day" } }] },
      { choices: [{ delta: {}, finish_reason: "stop" }] },
    ]);
    const without = eventsOf((await chat(server, { model: "gpt-4o", stream: true })).text);
    expect(without.some((event) => typeof event === "object" && event !== null && "usage" in event)).toBe(false);
  });

  test("with a cut where the output limit falls, inside of a call's arguments too", async () => {
    const server = await startOpenAi({ script: () => ({ say: "abcdefghij" }) });
    const cut = JSON.parse((await chat(server, { model: "gpt-4o", max_tokens: 2 })).text);
    expect(cut.choices[0]).toMatchObject({ message: { content: "abcdefgh" }, finish_reason: "length" });
    server.script(() => ({ call: [{ tool: "look", args: { at: "the long list of things" } }] }));
    const half = JSON.parse((await chat(server, { model: "gpt-4o", max_tokens: 4 })).text);
    expect(half.choices[0]).toMatchObject({
      message: { tool_calls: [{ function: { arguments: '{"at":"the l' } }] },
      finish_reason: "length",
    });
  });
});
