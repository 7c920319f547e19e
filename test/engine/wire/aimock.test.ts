import { LLMock } from "@copilotkit/aimock";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { chooseEngine } from "../../../src/engine/models/ladder.ts";
import type { Engine } from "../../../src/engine/port.ts";
import { Config } from "../../../src/home/config.ts";
import type { TurnEvent } from "../../../src/protocol/turns.ts";
import { startDaemonProcess } from "../../support/daemon.ts";
import { turn } from "../../support/engine.ts";
import { type AtTheEnd, collectEndings, temporaryFolder, temporaryHome } from "../../support/home.ts";
import { engineOn, noteTool, sessionSpec } from "../../support/wires.ts";

const KEY = "sk-the-key-that-aimock-knows-0000";

/** The wires of a third-party mock for all providers. */
const WIRES = [
  { name: "completions", settings: (url: string) => ({ baseUrl: `${url}/v1`, model: "gpt-4o" }) },
  { name: "responses", settings: (url: string) => ({ baseUrl: `${url}/v1`, wireApi: "responses", model: "gpt-5" }) },
  { name: "anthropic", settings: (url: string) => ({ type: "anthropic", baseUrl: url, model: "claude-sonnet-4-5" }) },
  { name: "azure", settings: (url: string) => ({ type: "azure", baseUrl: url, model: "my-deployment" }) },
];

async function startMock(atTheEnd: AtTheEnd): Promise<LLMock> {
  const mock = new LLMock({ port: 0, strict: true, auth: { apiKeys: [KEY] } });
  await mock.start();
  atTheEnd(() => mock.stop());
  return mock;
}

describe.each(WIRES)("on $name", ({ name, settings }) => {
  let mock: LLMock;
  let engine: Engine;
  let folder: string;
  let count = 0;

  beforeAll(async () => {
    const { atTheEnd, end } = collectEndings();
    folder = temporaryFolder(atTheEnd);
    mock = await startMock(atTheEnd);
    engine = await engineOn(folder, { ...settings(mock.url), apiKey: KEY });
    atTheEnd(() => engine.stop());
    return end;
  });
  const ask = async (prompt: string, { notes = [] as unknown[], session = `s${count++}` } = {}) => {
    const events: TurnEvent[] = [];
    mock.clearRequests();
    const spec = sessionSpec(session, folder, [noteTool(notes)]);
    const result = await engine.session(spec).run(turn(prompt, { onEvent: (event) => events.push(event) }));
    const said = events.map((event) => (event.kind === "delta" ? event.text : "")).join("");
    const requests = mock.getRequests().filter(({ method }) => method === "POST");
    return { result, events, said, session, requests };
  };

  test("the first message is answered, and the second knows it", async () => {
    mock.onMessage("good morning", { content: "Grüße, 世界 🎉👩‍👩‍👧!" }, { chunkSize: 3 });
    mock.onMessage("and again", { content: "Still here." });
    const first = await ask("good morning");
    expect(first.result).toMatchObject({ outcome: "done", text: "Grüße, 世界 🎉👩‍👩‍👧!" });
    expect(first.said).toBe("Grüße, 世界 🎉👩‍👩‍👧!");
    expect(first.requests).toHaveLength(1);
    const second = await ask("and again", { session: first.session });
    expect(second.result).toMatchObject({ outcome: "done", text: "Still here." });
    expect(JSON.stringify(second.requests[0]!.body)).toContain("Grüße, 世界 🎉👩‍👩‍👧!");
  });

  test("a tool is called with what the model gave, and its result comes back", async () => {
    const call = { name: "note", arguments: JSON.stringify({ text: "Käse 🧀" }) };
    mock.on({ userMessage: "note this", hasToolResult: false }, { content: "One moment.", toolCalls: [call] }, { chunkSize: 4 });
    mock.on({ userMessage: "note this", toolResultContains: "noted 1" }, { content: "It is noted." });
    const notes: unknown[] = [];
    const { result, requests } = await ask("note this", { notes });
    expect(result).toMatchObject({ outcome: "done", text: "It is noted.", tools: ["note"] });
    expect(notes).toEqual([{ text: "Käse 🧀" }]);
    expect(requests).toHaveLength(2);
  });

  test("parallel calls all run, once each", async () => {
    const texts = ["one", "two", "three"];
    const toolCalls = texts.map((text) => ({ name: "note", arguments: JSON.stringify({ text }) }));
    mock.on({ userMessage: "three at once", hasToolResult: false }, { toolCalls });
    mock.on({ userMessage: "three at once", hasToolResult: true }, { content: "All three." });
    const notes: { text: string }[] = [];
    const { result } = await ask("three at once", { notes });
    expect(result).toMatchObject({ outcome: "done", text: "All three.", tools: ["note", "note", "note"] });
    expect(notes.map(({ text }) => text).sort()).toEqual([...texts].sort());
  });

  test("text after a call belongs to the same step", async () => {
    mock.on(
      { userMessage: "call, then talk", hasToolResult: false },
      {
        blocks: [
          { type: "text", text: "First. " },
          { type: "toolCall", name: "note", arguments: JSON.stringify({ text: "between" }) },
          { type: "text", text: "Last." },
        ],
      },
    );
    mock.on({ userMessage: "call, then talk", hasToolResult: true }, { content: "Done." });
    const notes: unknown[] = [];
    const { result, said } = await ask("call, then talk", { notes });
    expect(result).toMatchObject({ outcome: "done", text: "Done." });
    expect(notes).toEqual([{ text: "between" }]);
    expect(said).toContain("First. ");
    expect(said).toContain("Last.");
  });

  test("a long answer arrives whole, piece by piece", async () => {
    const content = Array.from({ length: 3_000 }, (_, index) => `line ${index} 🎈`).join("\n");
    mock.onMessage("tell me everything", { content }, { chunkSize: 17 });
    const { result, said, events } = await ask("tell me everything");
    expect(result.outcome).toBe("done");
    expect(result.text).toBe(content);
    expect(said).toBe(content);
    expect(events.filter(({ kind }) => kind === "delta").length).toBeGreaterThan(100);
  });

  test("an answer that was cut by the output limit is asked on for, and is one answer", async () => {
    mock.on({ userMessage: "count to three" }, { content: "One, two, ", finishReason: "length" });
    mock.on({ predicate: ({ messages }) => /left off/.test(JSON.stringify(messages.at(-1))) }, { content: "three." });
    const { result, said, requests } = await ask("count to three");
    expect(result).toMatchObject({ outcome: "done", text: "One, two, three." });
    expect(said).toBe("One, two, three.");
    expect(requests).toHaveLength(2);
    expect(result.usage.calls).toBe(2);
  });

  test("reasoning is no part of the answer", async () => {
    mock.on({ userMessage: "think first" }, { content: "Forty-two.", reasoning: "Six times seven 🤔" }, { chunkSize: 3 });
    const { result, said } = await ask("think first");
    expect(result).toMatchObject({ outcome: "done", text: "Forty-two." });
    expect(said).toBe("Forty-two.");
  });

  test("reasoning between several calls disturbs none of them", async () => {
    const thinking = { reasoning: "I must note this.", reasoningSignature: "c2lnbmVkLWJ5LWFpbW9jaw==" };
    const step = (text: string) => ({ toolCalls: [{ name: "note", arguments: JSON.stringify({ text }) }], ...thinking });
    mock.on({ userMessage: "think between", hasToolResult: false }, step("one"));
    mock.on({ userMessage: "think between", toolResultContains: "noted 1" }, step("two"));
    mock.on({ userMessage: "think between", toolResultContains: "noted 2" }, { content: "Both." });
    const notes: unknown[] = [];
    const { result, requests } = await ask("think between", { notes });
    expect(result).toMatchObject({ outcome: "done", text: "Both.", tools: ["note", "note"] });
    expect(notes).toEqual([{ text: "one" }, { text: "two" }]);
    expect(requests).toHaveLength(3);
  });

  test("the model that answered is the one that is recorded", async () => {
    mock.onMessage("who are you", { content: "Me.", model: "somebody-else-2026" });
    const { result } = await ask("who are you");
    expect(result.served).toEqual(["somebody-else-2026"]);
  });

  test("what the provider counted is what is reported", async () => {
    const usage = { prompt_tokens: 321, completion_tokens: 45, input_tokens: 321, output_tokens: 45 };
    mock.onMessage("what does it cost", { content: "That much.", usage });
    const { result } = await ask("what does it cost");
    expect(result.usage).toMatchObject({ calls: 1, inputTokens: 321, outputTokens: 45 });
  });

  test("a failure that passes is forgiven", async () => {
    mock.onMessage("try again", { content: "Now it works." });
    mock.nextRequestError(500, { message: "the backend fell over", type: "server_error" });
    const { result, requests } = await ask("try again");
    expect(result).toMatchObject({ outcome: "done", text: "Now it works." });
    expect(requests).toHaveLength(2);
  });

  test("an answer that broke off in the middle is asked for again, and the reader is told", async () => {
    const content = "a long answer that goes on and on and on";
    mock.on({ userMessage: "break off", sequenceIndex: 0 }, { content }, { chunkSize: 4, latency: 20, truncateAfterChunks: 10 });
    mock.on({ userMessage: "break off", sequenceIndex: 1 }, { content });
    const { result, events } = await ask("break off");
    expect(result).toMatchObject({ outcome: "done", text: content });
    expect(events.some(({ kind }) => kind === "restarted")).toBe(true);
  });

  test("a connection that is cut before the first word is made again", async () => {
    mock.on({ userMessage: "hang up", sequenceIndex: 0 }, { content: "never said" }, { chaos: { disconnectRate: 1 } });
    mock.on({ userMessage: "hang up", sequenceIndex: 1 }, { content: "There you are." });
    const { result } = await ask("hang up");
    expect(result).toMatchObject({ outcome: "done", text: "There you are." });
  });

  test("a limit on the rate is waited for", async () => {
    mock.on({ userMessage: "too fast", sequenceIndex: 0 }, { error: { message: "Slow down." }, status: 429, retryAfter: 1 });
    mock.on({ userMessage: "too fast", sequenceIndex: 1 }, { content: "Now." });
    const { result, requests } = await ask("too fast");
    expect(result).toMatchObject({ outcome: "done", text: "Now." });
    expect(requests[1]!.timestamp - requests[0]!.timestamp).toBeGreaterThanOrEqual(900);
  });

  test("a key that is not accepted is told as such", async () => {
    mock.onMessage("let me in", { content: "Never." });
    const stranger = await engineOn(temporaryFolder(), { ...settings(mock.url), apiKey: "sk-a-wrong-key-0000" });
    onTestFinished(() => stranger.stop());
    const result = await stranger.session(sessionSpec("wrong", folder)).run(turn("let me in"));
    expect(result).toMatchObject({ outcome: "failed", error: { code: "unauthorized" } });
    expect(result.error!.message).toMatch(/HTTP 401.*provider\.apiKey in config\.json/);
  });

  test("two conversations at once do not disturb each other", async () => {
    for (const name of ["left", "right"])
      mock.onMessage(`from the ${name}`, { content: `${name} `.repeat(200) }, { chunkSize: 5, latency: 1 });
    const [left, right] = await Promise.all([ask("from the left"), ask("from the right")]);
    expect(left.result).toMatchObject({ outcome: "done", text: "left ".repeat(200) });
    expect(right.result).toMatchObject({ outcome: "done", text: "right ".repeat(200) });
  });

  test("the models are those of the provider's list", async () => {
    const ids = (await engine.models()).map(({ id }) => id);
    // Azure lists what could be deployed, so its list is not requested.
    if (name.startsWith("azure")) expect(ids).toEqual(["my-deployment"]);
    else expect(ids.length).toBeGreaterThan(1);
  });
});

const LASTING = [
  { what: "429", response: { error: { message: "Slow down, please." }, status: 429, retryAfter: 0 }, words: /Slow down, please/ },
  { what: "500", response: { error: { message: "It fell over." }, status: 500 }, words: /HTTP 500: It fell over/ },
  { what: "403", response: { error: { message: "Not for you." }, status: 403 }, words: /HTTP 403: Not for you/ },
  { what: "404", response: { error: { message: "The model `x` does not exist." }, status: 404 }, words: /does not exist/ },
  { what: "no JSON", response: { content: "x" }, chaos: { malformedRate: 1 }, words: /malformed json/ },
  { what: "hung up", response: { content: "x" }, chaos: { disconnectRate: 1 }, words: /cut the connection/ },
];
const CODES = ["rate_limited", "failing", "unauthorized", "no_model", "failing", "unreachable"];

// Concurrent, because nearly all of their time is spent waiting for the runtime's retries.
test.concurrent.for(WIRES)("what does not pass is told as what it is on $name", { timeout: 60_000 }, async (wire, test) => {
  const mock = await startMock(test.onTestFinished);
  const folder = temporaryFolder(test.onTestFinished);
  const engine = await engineOn(folder, { ...wire.settings(mock.url), apiKey: KEY });
  test.onTestFinished(() => engine.stop());
  const results = await Promise.all(
    LASTING.map(({ what, response, chaos }, index) => {
      mock.onMessage(`always ${what}`, response, chaos && { chaos });
      return engine.session(sessionSpec(`s${index}`, folder)).run(turn(`always ${what}`));
    }),
  );
  expect(results.map(({ error }) => error?.code)).toEqual(CODES);
  for (const [index, { words }] of LASTING.entries()) expect(results[index]!.error!.message).toMatch(words);
});

test("a deployment of Azure is asked by the routes of the version that was named", async () => {
  const mock = await startMock(onTestFinished);
  mock.onMessage("hello", { content: "Hello." });
  const folder = temporaryFolder();
  const settings = { type: "azure", baseUrl: mock.url, apiVersion: "2024-10-21", model: "my-deployment", apiKey: KEY };
  const engine = await engineOn(folder, settings);
  onTestFinished(() => engine.stop());
  expect(await engine.session(sessionSpec("a", folder)).run(turn("hello"))).toMatchObject({ outcome: "done", text: "Hello." });
  expect(mock.getLastRequest()?.path).toBe("/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21");
});

test("Ollama's models are found and asked", async () => {
  const mock = new LLMock({ port: 0, strict: true });
  await mock.start();
  onTestFinished(() => mock.stop());
  mock.on({ userMessage: "hello", model: "llama3.2:latest" }, { content: "Hello from the barn 🦙." });
  mock.on({ userMessage: "never", model: "nomic-embed-text:latest" }, { content: "never" });
  const folder = temporaryFolder();
  const config = Config.parse({ ollamaUrl: mock.url });
  const choice = await chooseEngine(config, { IO_ENGINE: "ollama", COPILOT_MODEL: "llama3.2" });
  expect(choice.model).toBe("llama3.2:latest");
  const engine = await engineOn(folder, { baseUrl: mock.url }, { choice, config: () => config });
  onTestFinished(() => engine.stop());
  expect(await engine.session(sessionSpec("a", folder)).run(turn("hello"))).toMatchObject({
    outcome: "done",
    text: "Hello from the barn 🦙.",
  });
  expect((await engine.models()).map(({ id }) => id)).toContain("llama3.2:latest");
});

test.each(WIRES)("a whole daemon talks on $name", { timeout: 60_000 }, async ({ settings }) => {
  const mock = await startMock(onTestFinished);
  const search = { name: "wiki_search", arguments: JSON.stringify({ query: "tea" }) };
  mock.on({ userMessage: "what do I drink", hasToolResult: false }, { content: "Let me look.", toolCalls: [search] });
  mock.on({ userMessage: "what do I drink", hasToolResult: true }, { content: "Tea, ", finishReason: "length" });
  mock.on({ predicate: ({ messages }) => /left off/.test(JSON.stringify(messages.at(-1))) }, { content: "I think 🍵." });
  const home = temporaryHome({ provider: { ...settings(mock.url), apiKey: KEY } });
  const daemon = await startDaemonProcess(home);
  const message = await daemon.ask({ text: "what do I drink" });
  expect(message).toMatchObject({ status: "done" });
  expect(JSON.stringify(message)).toContain("Tea, I think 🍵.");
});
