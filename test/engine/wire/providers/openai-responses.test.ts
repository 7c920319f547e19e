import { describe, expect, test } from "vitest";
import type { Provider } from "../../../support/providers/core.ts";
import { startOpenAi } from "../../../support/providers/openai.ts";
import { bearer, errorOf, eventsOf, post } from "../../../support/providers/talk.ts";

const respond = (server: Provider, body: Record<string, unknown>) =>
  post(`${server.url}/responses`, { input: "Hello", ...body }, bearer());
const typesOf = (text: string) => eventsOf(text).map((event) => (event as { type: string }).type);
const unsupported = (name: string) => `Unsupported parameter: '${name}' is not supported with this model.`;
const sealed = { include: ["reasoning.encrypted_content"] };

const CASES: [model: string, body: Record<string, unknown>, message: string][] = [
  ["gpt-4o", { reasoning: { effort: "medium" }, ...sealed }, unsupported("reasoning.effort")],
  ["gpt-4.1", { reasoning: { summary: "auto" } }, unsupported("reasoning.summary")],
  ["gpt-4o-mini", sealed, "Encrypted content is not supported with this model."],
  ["gpt-5", { temperature: 1 }, unsupported("temperature")],
  [
    "gpt-5.1",
    { reasoning: { effort: "minimal" } },
    "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none', 'low', 'medium', and 'high'.",
  ],
  [
    "gpt-4o",
    { max_output_tokens: 10 },
    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 10 instead.",
  ],
  ["gpt-4o", { stop: ["x"] }, "Unknown parameter: 'stop'."],
  [
    "gpt-4o",
    { messages: [] },
    "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.",
  ],
  ["gpt-4", {}, "The requested model 'gpt-4' does not exist."],
  [
    "gpt-4o",
    { input: [{ type: "function_call", call_id: "call_1", name: "look", arguments: "{}" }] },
    "No tool output found for function call call_1.",
  ],
  [
    "gpt-4o",
    { input: [{ type: "function_call_output", call_id: "call_1", output: "" }] },
    "No tool call found for function call output with call_id call_1.",
  ],
  [
    "gpt-4o",
    { input: [{ role: "assistant", content: [{ type: "input_text", text: "?" }] }] },
    "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
  ],
  ["gpt-4o", { input: [{ role: "user", content: "Hello", metadata: {} }] }, "Unknown parameter: 'input[0].metadata'."],
  ["gpt-4o", { tools: [{ type: "function", function: { name: "look" } }] }, "Missing required parameter: 'tools[0].name'."],
];

describe("OpenAI's responses refuse", () => {
  test.each(CASES.map(([model, body, message]) => [model, message, body] as const))("%s: %s", async (model, message, body) => {
    const server = await startOpenAi();
    const answer = await respond(server, { model, ...body });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ message, type: "invalid_request_error" });
  });

  test("reasoning that was not kept, or that this server did not seal", async () => {
    const server = await startOpenAi();
    const item = { type: "reasoning", id: "rs_1", summary: [] };
    const input = [item, { role: "assistant", content: "Yes" }];
    const lost = await respond(server, { model: "o3", store: false, input });
    expect(lost.status).toBe(404);
    expect(errorOf(lost).message).toBe(
      "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
    );
    const foreign = [{ ...item, encrypted_content: "gAAAAforeign" }, input[1]];
    expect(errorOf(await respond(server, { model: "o3", input: foreign })).code).toBe("invalid_encrypted_content");
  });

  test("more than the window holds, after the stream has begun", async () => {
    const server = await startOpenAi({ models: { "gpt-4o": { window: 100 } } });
    const long = { model: "gpt-4o", input: "x".repeat(1_000) };
    expect((await respond(server, long)).status).toBe(400);
    const stream = await respond(server, { ...long, stream: true });
    expect(stream.status).toBe(200);
    expect(eventsOf(stream.text)).toMatchObject([
      { type: "response.created" },
      { type: "response.in_progress" },
      {
        type: "error",
        sequence_number: 2,
        error: {
          code: "context_length_exceeded",
          message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
        },
      },
      { type: "response.failed", response: { status: "failed", error: { code: "context_length_exceeded" } } },
    ]);
    expect(server.refusals()).toHaveLength(2);
  });
});

describe("OpenAI's responses answer", () => {
  test("with reasoning that comes back sealed, then text, then a call", async () => {
    const server = await startOpenAi({ script: () => ({ reason: "Hm.", say: "Yes.", call: [{ tool: "look", args: {} }] }) });
    const asked = { model: "o4-mini", store: false, reasoning: { summary: "auto" }, ...sealed };
    const { text } = await respond(server, { ...asked, stream: true });
    expect(typesOf(text)).toEqual([
      ...["response.created", "response.in_progress", "response.output_item.added", "response.reasoning_summary_part.added"],
      ...["response.reasoning_summary_text.delta", "response.reasoning_summary_text.done"],
      ...["response.reasoning_summary_part.done", "response.output_item.done", "response.output_item.added"],
      ...["response.content_part.added", "response.output_text.delta", "response.output_text.done"],
      ...["response.content_part.done", "response.output_item.done", "response.output_item.added"],
      ...["response.function_call_arguments.delta", "response.function_call_arguments.done", "response.output_item.done"],
      "response.completed",
    ]);
    const { response } = eventsOf(text).at(-1) as { response: { output: { type: string; call_id?: string }[] } };
    const result = { type: "function_call_output", call_id: response.output.at(-1)?.call_id, output: "seen" };
    expect((await respond(server, { ...asked, input: [...response.output, result] })).status).toBe(200);
    const withoutReasoning = [...response.output.slice(1), result];
    expect(errorOf(await respond(server, { ...asked, input: withoutReasoning })).message).toMatch(
      /of type 'function_call' was provided without its required 'reasoning' item/,
    );
  });

  test("incomplete at the output limit, refused, and failed half-way", async () => {
    const server = await startOpenAi({ script: () => ({ say: "x".repeat(100) }) });
    const ask = async (body = {}) => eventsOf((await respond(server, { model: "gpt-4o", stream: true, ...body })).text);
    expect((await ask({ max_output_tokens: 16 })).at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    });
    server.script(() => ({ refuse: "I will not." }));
    expect((await ask()).at(-1)).toMatchObject({
      response: { output: [{ content: [{ type: "refusal", refusal: "I will not." }] }] },
    });
    server.script(() => ({ say: "Half", ends: { message: "It broke.", code: "server_error" } }));
    expect((await ask()).at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed", error: { code: "server_error", message: "It broke." } },
    });
  });
});
