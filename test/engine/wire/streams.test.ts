import { describe, expect, onTestFinished, test } from "vitest";
import { messages } from "../../../src/engine/wire/messages.ts";
import { toJson } from "../../../src/engine/wire/stream.ts";
import type { TurnEvent } from "../../../src/protocol/turns.ts";
import { turn } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { hasLoneSurrogate } from "../../support/providers/json.ts";
import { soon } from "../../support/soon.ts";
import { chat, message, messageItem, type RawAnswer, response, say, startRaw, textBlock } from "../../support/wire-server.ts";
import { engineOn, noteTool, sessionSpec } from "../../support/wires.ts";

const SETTINGS = {
  completions: (origin: string) => ({ baseUrl: `${origin}/v1`, model: "m" }),
  responses: (origin: string) => ({ baseUrl: `${origin}/v1`, wireApi: "responses", model: "gpt-5" }),
  messages: (origin: string) => ({ type: "anthropic", baseUrl: origin, model: "claude-sonnet-4-5" }),
};

/** Runs one turn against a provider that sends exactly this. */
async function ask(wire: keyof typeof SETTINGS, answer: RawAnswer) {
  const server = await startRaw(answer);
  const folder = temporaryFolder();
  const engine = await engineOn(folder, SETTINGS[wire](server.origin));
  onTestFinished(() => engine.stop());
  const notes: unknown[] = [];
  const events: TurnEvent[] = [];
  const started = performance.now();
  const session = engine.session(sessionSpec("s", folder, [noteTool(notes)]));
  const result = await session.run(turn("go", { onEvent: (event) => events.push(event) }));
  const said = events.map((event) => (event.kind === "delta" ? event.text : "")).join("");
  return { result, notes, said, requests: server.requests, ms: performance.now() - started, session };
}

const called = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown) => ({
  tool_calls: [
    {
      ...(index !== undefined && { index }),
      ...(id !== undefined && { id }),
      type: "function",
      function: { ...(name !== undefined && { name }), arguments: args },
    },
  ],
});
const note = (text: string) => JSON.stringify({ text });

describe("on completions", () => {
  const twice =
    (first: readonly object[], finish = "tool_calls"): RawAnswer =>
    ({ index }, reply) =>
      say(reply, index === 0 ? chat(first, finish) : chat([{ content: "done" }]));

  test("usage that grows with every piece is counted once, at its end", async () => {
    const { result } = await ask("completions", (_, reply) =>
      say(
        reply,
        chat([{ content: "a" }, { content: "b" }, { content: "c" }]).map((each, index) =>
          typeof each === "object"
            ? { ...each, usage: { prompt_tokens: 50, completion_tokens: index + 1, total_tokens: 51 + index } }
            : each,
        ),
      ),
    );
    expect(result).toMatchObject({ outcome: "done", text: "abc", usage: { calls: 1, inputTokens: 50, outputTokens: 4 } });
  });

  test("arguments that come before the name reach the tool", async () => {
    const { result, notes } = await ask(
      "completions",
      twice([called(0, "c1", undefined, '{"te'), called(0, undefined, "note", 'xt":"x"}')]),
    );
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual([{ text: "x" }]);
  });

  test("several calls that all claim the first place are several calls", async () => {
    const { result, notes } = await ask(
      "completions",
      twice([called(0, "c1", "note", note("one")), called(0, "c2", "note", note("two"))]),
    );
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual(expect.arrayContaining([{ text: "one" }, { text: "two" }]));
    expect(notes).toHaveLength(2);
  });

  test("calls without a place are told apart by their ids and names", async () => {
    const { result, notes } = await ask(
      "completions",
      twice([
        called(undefined, "c1", "note", '{"text":'),
        called(undefined, undefined, undefined, '"one"}'),
        called(undefined, "c2", "note", '{"text":'),
        called(undefined, undefined, undefined, '"two"}'),
      ]),
    );
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual([{ text: "one" }, { text: "two" }]);
  });

  test("a call that names itself in every piece is one call", async () => {
    const { notes } = await ask("completions", twice([called(0, "c1", "note", '{"text":'), called(0, "c1", "note", '"one"}')]));
    expect(notes).toEqual([{ text: "one" }]);
  });

  test("arguments that are an object and not its text are arguments", async () => {
    const { result, notes } = await ask("completions", twice([called(0, "c1", "note", { text: "x" })]));
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual([{ text: "x" }]);
  });

  test("letters that are split in reasoning and in arguments are joined, or replaced", async () => {
    const { result, notes } = await ask(
      "completions",
      twice([
        { reasoning_content: "hm \ud83c" },
        { reasoning_content: "\udf89 \ud83c" },
        called(0, "c1", "note", '{"text":"a\ud83c'),
        called(0, undefined, undefined, '\udf89b"}'),
      ]),
    );
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual([{ text: "a🎉b" }]);
  });

  test("thoughts before the rest of an answer that was cut are no part of it", async () => {
    const { result, said } = await ask("completions", ({ index }, reply) =>
      say(
        reply,
        index === 0
          ? chat([{ content: "<think>a plan</think>" }, { content: "One, " }], "length")
          : chat([{ content: "<think>where was I" }, { content: "</think>two." }]),
      ),
    );
    expect(result).toMatchObject({ outcome: "done", text: "One, two." });
    expect(said).toBe("One, two.");
  });

  test("a cut inside of the first letters of a tag loses nothing", async () => {
    const { result } = await ask("completions", ({ index }, reply) =>
      say(
        reply,
        index === 0 ? chat([{ content: "a <" }, { content: "b" }], "length") : chat([{ content: "<th" }, { content: " c" }]),
      ),
    );
    expect(result).toMatchObject({ outcome: "done", text: "a <b<th c" });
  });

  test("an answer is over when the provider says so, though the connection stays open", async () => {
    const { result, ms } = await ask("completions", (_, reply) => say(reply, chat([{ content: "that is all" }]), { end: false }));
    expect(result).toMatchObject({ outcome: "done", text: "that is all" });
    expect(ms).toBeLessThan(soon(10_000));
  });

  test("an address that has moved is told with the place it moved to", async () => {
    const { result } = await ask("completions", (_, reply) => {
      reply
        .writeHead(308, { location: "https://elsewhere.example/v1/chat/completions", "content-type": "text/html" })
        .end("<html></html>");
    });
    expect(result.outcome).toBe("failed");
    expect(result.error!.message).toContain("https://elsewhere.example");
  });

  test("a provider that compresses what nobody asked it to is asked not to", async () => {
    const { requests } = await ask("completions", (_, reply) => say(reply, chat([{ content: "x" }])));
    expect(requests[0]!.headers["accept-encoding"]).toBe("identity");
  });
});

describe("on messages", () => {
  const thinking = (text: string, signature: string) => ({
    block: { type: "thinking", thinking: "", signature: "" },
    deltas: [
      { type: "thinking_delta", thinking: text },
      { type: "signature_delta", signature },
    ],
  });
  const use = (id: string, ...json: string[]) => ({
    block: { type: "tool_use", id, name: "note", input: {} },
    deltas: json.map((partial_json) => ({ type: "input_json_delta", partial_json })),
  });

  test("thoughts before, between and after tools come back with their signatures", async () => {
    const { result, notes, requests } = await ask("messages", ({ index }, reply) => {
      if (index === 0)
        return say(
          reply,
          message(
            [thinking("first 🤔", "c2lnMQ=="), textBlock("Let me."), use("t1", note("one")), use("t2", note("two"))],
            "tool_use",
          ),
        );
      if (index === 1)
        return say(
          reply,
          message(
            [
              { block: { type: "redacted_thinking", data: "aGlkZGVu" }, deltas: [] },
              thinking("second", "c2lnMg=="),
              use("t3", note("three")),
            ],
            "tool_use",
          ),
        );
      return say(reply, message([thinking("third", "c2lnMw=="), textBlock("All noted.")]));
    });
    expect(result).toMatchObject({ outcome: "done", text: "All noted." });
    expect(notes).toHaveLength(3);
    const sent = requests[2]!.body.messages as { role: string; content: Record<string, unknown>[] }[];
    const thoughts = sent
      .filter(({ role }) => role === "assistant")
      .flatMap(({ content }) => content.filter(({ type }) => /thinking/.test(String(type))));
    expect(thoughts).toEqual([
      { type: "thinking", thinking: "first 🤔", signature: "c2lnMQ==" },
      { type: "redacted_thinking", data: "aGlkZGVu" },
      { type: "thinking", thinking: "second", signature: "c2lnMg==" },
    ]);
  });

  test("letters that are split in thoughts and in arguments are joined, or replaced", async () => {
    const { result, notes } = await ask("messages", ({ index }, reply) =>
      say(
        reply,
        index === 0
          ? message([{ ...thinking("hm \ud83c", "c2ln") }, use("t1", '{"text":"a\ud83c', '\udf89b"}')], "tool_use")
          : message([textBlock("done")]),
      ),
    );
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual([{ text: "a🎉b" }]);
  });

  test("an inner failure of the provider in the middle of an answer is tried again", async () => {
    const { result } = await ask("messages", ({ index }, reply) =>
      say(
        reply,
        index === 0
          ? [
              ...message([textBlock("half")], null),
              { type: "error", error: { type: "api_error", message: "Internal server error" } },
            ]
          : message([textBlock("whole")]),
      ),
    );
    expect(result).toMatchObject({ outcome: "done", text: "whole" });
  });

  test("an inner failure that stays is the provider's, and told in its words", { timeout: 60_000 }, async () => {
    const { result } = await ask("messages", (_, reply) =>
      say(reply, [{ type: "error", error: { type: "api_error", message: "Internal server error" } }]),
    );
    expect(result).toMatchObject({ outcome: "failed", error: { code: "failing" } });
    expect(result.error!.message).toContain("Internal server error");
  });

  test("an answer is over when the provider says so, though the connection stays open", async () => {
    const { result, ms } = await ask("messages", (_, reply) => say(reply, message([textBlock("that is all")]), { end: false }));
    expect(result).toMatchObject({ outcome: "done", text: "that is all" });
    expect(ms).toBeLessThan(soon(10_000));
  });
});

describe("on responses", () => {
  const reasoning = (id: string, encrypted_content: string) => ({
    item: { id, type: "reasoning", summary: [], encrypted_content },
  });
  const call = (id: string, text: string, ...deltas: string[]) => ({
    item: { id: `fc_${id}`, type: "function_call", call_id: id, name: "note", arguments: note(text), status: "completed" },
    between: [
      ...(deltas.length > 0 ? deltas : [note(text)]).map((delta) => ({ type: "response.function_call_arguments.delta", delta })),
      { type: "response.function_call_arguments.done", arguments: note(text) },
    ],
  });

  test("reasoning comes back encrypted as it was, before the calls that followed it", async () => {
    const { result, notes, requests } = await ask("responses", ({ index }, reply) => {
      if (index === 0) return say(reply, response([reasoning("rs_1", "ZW5jMQ=="), call("a", "one"), call("b", "two")]));
      if (index === 1)
        return say(reply, response([reasoning("rs_2", "ZW5jMg=="), messageItem("msg_1", "Once more."), call("c", "three")]));
      return say(reply, response([messageItem("msg_2", "All noted.")]));
    });
    expect(result).toMatchObject({ outcome: "done", text: "All noted." });
    expect(notes).toHaveLength(3);
    const sent = (requests[2]!.body.input as Record<string, unknown>[]).filter(
      ({ type }) => type === "reasoning" || type === "function_call",
    );
    expect(sent.map(({ type, encrypted_content, call_id }) => [type, encrypted_content ?? call_id])).toEqual([
      ["reasoning", "ZW5jMQ=="],
      ["function_call", "a"],
      ["function_call", "b"],
      ["reasoning", "ZW5jMg=="],
      ["function_call", "c"],
    ]);
  });

  test("two messages in one response are both told, and come back once each", async () => {
    const { result, said, session, requests } = await ask("responses", ({ index }, reply) =>
      say(
        reply,
        index === 0
          ? response([messageItem("msg_1", "First. "), reasoning("rs_1", "ZW5j"), messageItem("msg_2", "Second.")])
          : response([messageItem("msg_3", "yes")]),
      ),
    );
    expect(result).toMatchObject({ outcome: "done" });
    expect(said).toBe("First. Second.");
    // The runtime treats the last message of a response as the answer, and earlier ones as intermediate remarks.
    expect(result.text).toBe("Second.");
    await session.run(turn("again"));
    expect(requests[1]!.text.match(/First\. /g)).toHaveLength(1);
    expect(requests[1]!.text.match(/Second\./g)).toHaveLength(1);
  });

  test("letters that are split in arguments are joined", async () => {
    const { result, notes } = await ask("responses", ({ index }, reply) =>
      say(
        reply,
        index === 0 ? response([call("a", "a🎉b", '{"text":"a\ud83c', '\udf89b"}')]) : response([messageItem("m", "done")]),
      ),
    );
    expect(result).toMatchObject({ outcome: "done", text: "done" });
    expect(notes).toEqual([{ text: "a🎉b" }]);
  });

  test("a response that failed is no answer, whatever event tells it", { timeout: 60_000 }, async () => {
    const { result } = await ask("responses", (_, reply) => say(reply, response([messageItem("msg_1", "half")], "failed")));
    expect(result).toMatchObject({ outcome: "failed", error: { code: "failing" } });
  });

  test("an answer is over when the provider says so, though the connection stays open", async () => {
    const { result, ms } = await ask("responses", (_, reply) =>
      say(reply, response([messageItem("msg_1", "that is all")]), { end: false }),
    );
    expect(result).toMatchObject({ outcome: "done", text: "that is all" });
    expect(ms).toBeLessThan(soon(10_000));
  });
});

test.each([
  [
    "completions" as const,
    (args: string) => chat([called(0, "c1", "note", args)], "tool_calls"),
    () => chat([{ content: "done" }]),
  ],
  [
    "messages" as const,
    (args: string) =>
      message(
        [
          {
            block: { type: "tool_use", id: "t1", name: "note", input: {} },
            deltas: [{ type: "input_json_delta", partial_json: args }],
          },
        ],
        "tool_use",
      ),
    () => message([textBlock("done")]),
  ],
])("half a letter that a model escapes in its arguments ends no turn on %s", async (wire, first, then) => {
  const { result, requests } = await ask(wire, ({ index }, reply) =>
    say(reply, index === 0 ? first(String.raw`{"text":"a\ud83c"}`) : then()),
  );
  expect(result).toMatchObject({ outcome: "done", text: "done" });
  for (const { text } of requests) expect(hasLoneSurrogate(text.replaceAll(String.raw`\\u`, ""))).toBe(false);
});

test("a long result of a tool is shortened in its text, and nothing else of it is touched", () => {
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
  const content = [{ type: "tool_result", tool_use_id: "t1", content: [image, { type: "text", text: "long" }] }];
  expect(messages.shortened({ role: "user", content }, () => "cut")).toEqual({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: "t1", content: [image, { type: "text", text: "cut" }] }],
  });
});

test("a request never holds half a letter", () => {
  expect(toJson({ text: "a\ud83c", list: ["\udf89b", "🎉"] })).toBe('{"text":"a\ufffd","list":["\ufffdb","🎉"]}');
});
