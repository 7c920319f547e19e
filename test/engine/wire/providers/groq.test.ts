import { expect, onTestFinished, test } from "vitest";
import { turn } from "../../../support/engine.ts";
import { startGateway } from "../../../support/gateway.ts";
import { temporaryFolder } from "../../../support/home.ts";
import { startGroq } from "../../../support/providers/groq.ts";
import { bearer, errorOf, post } from "../../../support/providers/talk.ts";
import { engineOn, noteTool, sessionSpec } from "../../../support/wires.ts";

const KEY = "gsk_right_key_for_the_tests";
const MODEL = "llama-3.3-70b-versatile";
const messages = [{ role: "user", content: "Hello" }];

test("the stand-in refuses what Groq refuses", async () => {
  const server = await startGroq();
  const url = `${server.url}/chat/completions`;
  const ask = async (more: object) => errorOf(await post(url, { model: MODEL, messages, ...more }, bearer(KEY)));
  expect(errorOf(await post(url, { model: MODEL, messages }))).toMatchObject({ message: "Invalid API Key" });
  expect(await ask({ model: "llama" })).toMatchObject({ code: "model_not_found" });
  expect(await ask({ model: "whisper-large-v3" })).toMatchObject({ message: expect.stringContaining("does not support chat") });
  expect(await ask({ reasoning_effort: "medium" })).toMatchObject({ message: expect.stringContaining("not supported") });
  expect(await ask({ logprobs: true })).toMatchObject({ message: "property 'logprobs' is unsupported" });
  expect(await ask({ n: 2 })).toMatchObject({ message: "'n' : number must be at most 1" });
  expect(await ask({ max_tokens: 40_000 })).toMatchObject({ message: expect.stringContaining("equal to `32768`") });
  expect(await ask({ messages: [{ role: "user", name: "Ada", content: "Hi" }] })).toMatchObject({
    message: "'messages.0' : property 'name' is unsupported",
  });
  expect(await ask({ messages: [{ role: "user", content: "x ".repeat(300_000) }] })).toMatchObject({
    code: "context_length_exceeded",
  });
  expect((await post(url, { model: MODEL, messages }, bearer(KEY))).status).toBe(200);
});

test("IO talks with Groq by its real name, with tools, knows its models and windows, and has nothing refused twice", async () => {
  const server = await startGroq({
    script: ({ afterTool }) => (afterTool ? { say: "It is noted." } : { call: [{ tool: "note", args: { text: "tea" } }] }),
  });
  const gateway = await startGateway(server.origin);
  const folder = temporaryFolder();
  const settings = { baseUrl: "http://api.groq.com", apiKey: KEY, model: MODEL, proxy: gateway.url };
  const engine = await engineOn(folder, settings);
  onTestFinished(() => engine.stop());
  const notes: unknown[] = [];
  const session = engine.session(sessionSpec("s", folder, [noteTool(notes)]));
  for (const prompt of ["note tea", "and again"])
    expect(await session.run(turn(prompt))).toMatchObject({ outcome: "done", text: "It is noted.", served: [MODEL] });
  expect(notes).toEqual([{ text: "tea" }, { text: "tea" }]);
  expect(await engine.about()).toMatchObject({ model: MODEL, window: 131_072, windowFrom: "provider" });
  expect(server.requests.map(({ path }) => path)).toEqual(expect.arrayContaining(["/openai/v1/models"]));
  const refusals = server.refusals();
  expect(refusals.length).toBe(new Set(refusals).size);
});

test("a key that Groq does not take is told with where it is set", async () => {
  const server = await startGroq();
  const gateway = await startGateway(server.origin);
  const folder = temporaryFolder();
  const settings = { baseUrl: "http://api.groq.com", apiKey: "sk-or-v1-of-another-house", model: MODEL, proxy: gateway.url };
  const engine = await engineOn(folder, settings);
  onTestFinished(() => engine.stop());
  const { error } = await engine.session(sessionSpec("s", folder)).run(turn("hello"));
  expect(error).toMatchObject({ code: "unauthorized" });
  expect(error?.message).toMatch(/looks like one of OpenRouter's, but the address .* is Groq's/);
});
