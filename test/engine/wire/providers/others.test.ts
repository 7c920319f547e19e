import { expect, test } from "vitest";
import { startGitHubModels } from "../../../support/providers/github-models.ts";
import { startLlamaCpp } from "../../../support/providers/llama-cpp.ts";
import { startLmStudio } from "../../../support/providers/lmstudio.ts";
import { startOpenRouter } from "../../../support/providers/openrouter.ts";
import { bearer, errorOf, eventsOf, post } from "../../../support/providers/talk.ts";
import { startVllm } from "../../../support/providers/vllm.ts";

const messages = [{ role: "user", content: "Hello" }];
const long = [{ role: "user", content: "x".repeat(1_000) }];
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }];
const read = async (url: string, headers = {}) => (await fetch(url, { headers })).json();

test("vLLM names its window, and refuses a longer prompt, a tool it cannot choose and another model", async () => {
  const model = "Qwen/Qwen2.5-7B-Instruct";
  const server = await startVllm({ maxModelLen: 200, alternating: true });
  const url = `${server.url}/chat/completions`;
  expect(await read(`${server.url}/models`)).toMatchObject({ data: [{ id: model, max_model_len: 200 }] });
  const tooLong = await post(url, { model, messages: long });
  expect(JSON.parse(tooLong.text)).toEqual({
    error: {
      message:
        "This model's maximum context length is 200 tokens. However, your request has 258 input tokens. Please reduce the length of the input messages. (parameter=input_tokens, value=258)",
      ...{ type: "BadRequestError", param: "input_tokens", code: 400 },
    },
  });
  expect(errorOf(await post(url, { model, messages, max_tokens: 195 })).message).toMatch(/is too large: 195\./);
  expect(errorOf(await post(url, { model, messages, tools })).message).toBe(
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
  );
  expect(errorOf(await post(url, { model: "gpt-4o", messages }))).toMatchObject({
    message: "The model `gpt-4o` does not exist.",
    code: 404,
  });
  expect(errorOf(await post(url, { model, messages: [...messages, ...messages] })).message).toBe(
    "Conversation roles must alternate user/assistant/user/assistant/...",
  );
});

test("llama.cpp names its window in two places, and counts what is too much", async () => {
  const server = await startLlamaCpp({ contextSize: 200, key: "secret", jinja: false, loading: 1 });
  const url = `${server.url}/chat/completions`;
  const headers = bearer("secret");
  expect(errorOf(await post(url, { messages }, headers))).toEqual({
    code: 503,
    message: "Loading model",
    type: "unavailable_error",
  });
  expect(await read(`${server.url}/models`)).toMatchObject({ data: [{ meta: { n_ctx: 200, n_ctx_train: 131_072 } }] });
  expect(await read(`${server.origin}/props`, headers)).toMatchObject({ default_generation_settings: { n_ctx: 200 } });
  expect(errorOf(await post(url, { messages }))).toMatchObject({ code: 401, message: "Invalid API Key" });
  expect(errorOf(await post(url, { messages: long }, headers))).toEqual({
    code: 400,
    message: "request (258 tokens) exceeds the available context size (200 tokens), try increasing it",
    ...{ type: "exceed_context_size_error", n_prompt_tokens: 258, n_ctx: 200 },
  });
  expect(errorOf(await post(url, { messages, tools }, headers)).message).toBe("tools param requires --jinja flag");
  expect(JSON.parse((await post(url, { model: "whatever", messages }, headers)).text).model).toBe("whatever");
});

test("LM Studio says what is wrong in a plain text, in a stream too, and greets a wrong path with a 200", async () => {
  const server = await startLmStudio({ models: { small: { type: "llm", maxContext: 32_768, loadedContext: 100 } } });
  const url = `${server.url}/chat/completions`;
  const error =
    "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input";
  const plain = await post(url, { model: "small", messages: long });
  expect([plain.status, JSON.parse(plain.text)]).toEqual([400, { error }]);
  const stream = await post(url, { model: "small", messages: long, stream: true });
  expect([stream.status, eventsOf(stream.text)]).toEqual([200, [{ error }]]);
  const stray = await post(`${server.url}/v1/chat/completions`, {});
  expect([stray.status, JSON.parse(stray.text)]).toEqual([
    200,
    { error: "Unexpected endpoint or method. (POST /v1/v1/chat/completions)" },
  ]);
  expect(await read(`${server.origin}/api/v0/models`)).toMatchObject({
    data: [{ id: "small", max_context_length: 32_768, loaded_context_length: 100, state: "loaded" }],
  });
});

test("OpenRouter comments while one waits, fails in the middle of a 200, and wants money", async () => {
  const server = await startOpenRouter({ affordable: 222 });
  const url = `${server.url}/chat/completions`;
  const headers = bearer("sk-or-v1-right-key-for-the-tests");
  const model = "openai/gpt-4o";
  const poor = await post(url, { model, messages, max_tokens: 4_096 }, headers);
  expect([poor.status, errorOf(poor)]).toEqual([
    402,
    {
      message:
        "This request requires more credits, or fewer max_tokens. You requested up to 4096 tokens, but can only afford 222. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account",
      code: 402,
    },
  ]);
  server.script(() => ({ say: "Half", ends: { message: "Provider disconnected unexpectedly", code: 502 } }));
  const { status, text } = await post(url, { model, messages, max_tokens: 100, stream: true }, headers);
  expect(status).toBe(200);
  expect(text).toMatch(/^: OPENROUTER PROCESSING\n/);
  expect(eventsOf(text).at(-1)).toMatchObject({
    error: { code: 502, message: "Provider disconnected unexpectedly" },
    choices: [{ finish_reason: "error" }],
  });
  expect(errorOf(await post(url, { model: "gpt-4o", messages }, headers)).message).toBe("gpt-4o is not a valid model ID");
  expect(errorOf(await post(url, { model: "google/gemma-2-9b-it", messages, tools }, headers)).message).toMatch(
    /^No endpoints found that support tool use/,
  );
  expect(errorOf(await post(url, { model, messages })).message).toBe("No auth credentials found");
});

test("GitHub Models wants the publisher's name, and less than the model could hold", async () => {
  const server = await startGitHubModels({ maxInput: 200, unpermitted: "github_pat_weak" });
  const url = `${server.url}/chat/completions`;
  const headers = bearer("github_pat_right_token_for_the_tests");
  const model = "openai/gpt-4.1";
  expect((await post(url, { model, messages }, headers)).status).toBe(200);
  expect(errorOf(await post(url, { model: "gpt-4.1", messages }, headers)).code).toBe("unknown_model");
  const big = await post(url, { model, messages: long }, headers);
  expect([big.status, errorOf(big).message]).toEqual([413, "Request body too large for gpt-4.1 model. Max size: 200 tokens."]);
  expect(errorOf(await post(url, { model, messages }, bearer("github_pat_weak"))).message).toBe(
    "The `models` permission is required to access this endpoint",
  );
  expect((await fetch(`${server.url}/models`, { headers })).status).toBe(404);
  expect(await read(`${server.origin}/catalog/models`, headers)).toMatchObject([
    { id: model, limits: { max_input_tokens: 1_047_576 } },
    {},
    {},
  ]);
});
