import { describe, expect, test } from "vitest";
import { startAnthropic } from "../../../support/providers/anthropic.ts";
import type { Provider } from "../../../support/providers/core.ts";
import { errorOf, eventsOf, post } from "../../../support/providers/talk.ts";

const headers = { "x-api-key": "sk-ant-right-key-for-the-tests", "anthropic-version": "2023-06-01" };
const hello = { max_tokens: 2_000, messages: [{ role: "user", content: "Hello" }] };
const say = (server: Provider, body: Record<string, unknown>) =>
  post(`${server.url}/v1/messages`, { model: "claude-sonnet-4-5", ...hello, ...body }, headers);
const use = (id: string) => ({ role: "assistant", content: [{ type: "tool_use", id, name: "look", input: {} }] });
const result = (id: string) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "seen" }] });
const first = { role: "user", content: "Hello" };

const CASES: [body: Record<string, unknown>, message: string][] = [
  [{ max_tokens: undefined }, "max_tokens: Field required"],
  [
    { max_tokens: 100_000 },
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5-20250929",
  ],
  [{ reasoning_effort: "low" }, "reasoning_effort: Extra inputs are not permitted"],
  [
    { messages: [{ role: "system", content: "Be good." }, first] },
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
  ],
  [
    { messages: [first, use("toolu_1"), { role: "user", content: "And?" }] },
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
  ],
  [
    { messages: [first, result("toolu_1")] },
    "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
  ],
  [
    { messages: [first, use("call:1"), result("call:1")] },
    "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
  ],
  [{ messages: [{ role: "user", content: [{ type: "text", text: "" }] }] }, "messages: text content blocks must be non-empty"],
  [{ temperature: 0, top_p: 1 }, "`temperature` and `top_p` cannot both be specified for this model. Please use only one."],
  [{ model: "claude-opus-4-7", temperature: 0 }, "`temperature` is deprecated for this model."],
  [
    { model: "claude-opus-4-7", thinking: { type: "enabled", budget_tokens: 1_024 } },
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
  ],
  [
    { thinking: { type: "enabled", budget_tokens: 2_000 } },
    "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size",
  ],
  [
    { thinking: { type: "enabled", budget_tokens: 1_024 }, temperature: 0 },
    "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking",
  ],
  [
    { model: "claude-sonnet-4-6", messages: [first, { role: "assistant", content: "I" }] },
    "This model does not support assistant message prefill. The conversation must end with a user message.",
  ],
];

describe("Anthropic refuses", () => {
  test.each(CASES.map(([body, message]) => [message, body] as const))("%s", async (message, body) => {
    const server = await startAnthropic();
    const answer = await say(server, body);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ type: "error", error: { type: "invalid_request_error", message } });
  });

  test("a request without its key, its version, its path or its model", async () => {
    const server = await startAnthropic();
    const url = `${server.url}/v1/messages`;
    const { "anthropic-version": version, "x-api-key": key } = headers;
    const body = { model: "claude-nine", ...hello };
    expect(errorOf(await post(url, body, { "anthropic-version": version })).message).toBe("x-api-key header is required");
    expect(errorOf(await post(url, body, { ...headers, "x-api-key": "wrong" })).message).toBe("invalid x-api-key");
    expect(errorOf(await post(url, body, { "x-api-key": key })).message).toBe("anthropic-version: header is required");
    expect((await post(`${server.url}/v1/v1/messages`, body, headers)).status).toBe(404);
    expect(errorOf(await post(url, body, headers))).toEqual({ type: "not_found_error", message: "model: claude-nine" });
    expect(errorOf(await post(url, '{"model":"\\ud83c"}', headers)).message).toMatch(/no low surrogate in string/);
  });

  test("a prompt that is longer than the window, and one that leaves too little room", async () => {
    const server = await startAnthropic({ models: { "claude-opus-4-1": { window: 1_000 } } });
    const long = { model: "claude-opus-4-1", messages: [{ role: "user", content: "x".repeat(5_000) }] };
    expect(errorOf(await say(server, long)).message).toBe("prompt is too long: 1258 tokens > 1000 maximum");
    expect(errorOf(await say(server, { model: "claude-opus-4-1" })).message).toBe(
      "input length and `max_tokens` exceed context limit: 9 + 2000 > 1000, decrease input length or `max_tokens` and try again",
    );
  });

  test("a thought that was changed on its way back", async () => {
    const server = await startAnthropic({ script: () => ({ reason: "Hm.", call: [{ tool: "look" }] }) });
    const thinking = { type: "enabled", budget_tokens: 1_024 };
    const { content } = JSON.parse((await say(server, { thinking })).text);
    const back = (blocks: unknown[]) =>
      say(server, { thinking, messages: [first, { role: "assistant", content: blocks }, result(content[1].id)] });
    expect((await back(content)).status).toBe(200);
    expect(errorOf(await back([{ ...content[0], thinking: "Hm!" }, content[1]])).message).toBe(
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    );
    expect(errorOf(await back([content[1]])).message).toMatch(
      /^messages\.1\.content\.0\.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
    );
  });
});

describe("Anthropic answers", () => {
  test("in blocks, with a thought, text and a call", async () => {
    const server = await startAnthropic({
      script: () => ({ reason: "Hm.", say: ["Good ", "day"], call: [{ tool: "look", args: { at: 1 } }] }),
    });
    const { text } = await say(server, { stream: true });
    expect(eventsOf(text).map((event) => (event as { type: string }).type)).toEqual([
      ...["message_start", "ping"],
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["message_delta", "message_stop"],
    ]);
    expect(text).toContain("event: message_start\ndata: ");
  });

  test("with the reason why it stopped, and an error half-way or before", async () => {
    const server = await startAnthropic({ script: () => ({ say: "x".repeat(100) }) });
    const stop = async (body = {}) => JSON.parse((await say(server, body)).text).stop_reason;
    expect(await stop({ max_tokens: 5 })).toBe("max_tokens");
    server.script(() => ({ refuse: "No." }));
    expect(await stop()).toBe("refusal");
    server.script(() => ({ busy: "overloaded" }));
    const busy = await say(server, {});
    expect([busy.status, errorOf(busy)]).toEqual([529, { type: "overloaded_error", message: "Overloaded" }]);
    server.script(() => ({ say: "Half", ends: { message: "Overloaded", code: "overloaded_error" } }));
    expect(eventsOf((await say(server, { stream: true })).text).at(-1)).toEqual({
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    });
  });
});
