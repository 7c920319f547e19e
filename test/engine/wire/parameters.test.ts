import { expect, onTestFinished, test } from "vitest";
import { turn } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { startAnthropic } from "../../support/providers/anthropic.ts";
import { startOpenAi } from "../../support/providers/openai.ts";
import { engineOn, noteTool, sessionSpec } from "../../support/wires.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";
const FAMILIES = [
  "gpt-3.5-turbo",
  "gpt-4o",
  "gpt-4o-mini",
  "gpt-4.1",
  "gpt-4.1-mini",
  "o1",
  "o3-mini",
  "o4-mini",
  "gpt-5",
  "gpt-5-mini",
  "gpt-5.1",
];

test.each(["completions", "responses"] as const)(
  "every common family of OpenAI answers its first message on %s, with nothing refused",
  { timeout: 120_000 },
  async (wireApi) => {
    const provider = await startOpenAi({
      key: KEY,
      script: ({ afterTool }) => (afterTool ? { say: "done" } : { call: [{ tool: "note", args: { text: "x" } }] }),
    });
    const folder = temporaryFolder();
    const engine = await engineOn(folder, { baseUrl: provider.url, apiKey: KEY, wireApi, model: "gpt-4o" });
    onTestFinished(() => engine.stop());
    for (const model of FAMILIES) {
      const result = await engine
        .session({ ...sessionSpec(`s-${model.replaceAll(".", "-")}`, folder, [noteTool([])]), model })
        .run(turn("hello"));
      expect(`${model}: ${result.error?.message ?? result.text}`).toBe(`${model}: done`);
    }
    expect(provider.refusals()).toEqual([]);
  },
);

test("a parameter that a provider refuses is learnt once, for that provider and model, and over a restart", async () => {
  const reasoning = { efforts: ["low", "medium"], temperature: "value" } as const;
  const provider = await startOpenAi({
    key: KEY,
    models: { "house-thinker": reasoning, "house-talker": {} },
    script: () => ({ say: "done" }),
  });
  const folder = temporaryFolder();
  const memo = new Map<string, string>();
  const settings = { baseUrl: provider.url, apiKey: KEY, model: "house-thinker" };
  const first = await engineOn(folder, settings, { memo });
  expect(await first.session(sessionSpec("a", folder)).run(turn("hello"))).toMatchObject({ outcome: "done" });
  const refused = provider.refusals().length;
  expect(refused).toBeGreaterThan(0);
  expect(await first.session(sessionSpec("b", folder)).run(turn("hello"))).toMatchObject({ outcome: "done" });
  await first.stop();
  const second = await engineOn(folder, settings, { memo });
  onTestFinished(() => second.stop());
  expect(await second.session(sessionSpec("c", folder)).run(turn("hello"))).toMatchObject({ outcome: "done" });
  expect(provider.refusals()).toHaveLength(refused);
  // What one model refuses is still sent to another.
  await second.session({ ...sessionSpec("d", folder), model: "house-talker" }).run(turn("hello"));
  expect(provider.requests.at(-1)!.body).toHaveProperty("temperature");
});

test("what a person says of a model counts: it reasons, it has no tools, and headers of their own go along", async () => {
  const provider = await startOpenAi({
    key: KEY,
    models: { "my-thinker": { efforts: ["low", "medium"], temperature: "value" }, "my-talker": { tools: false } },
    script: () => ({ say: "done" }),
  });
  const folder = temporaryFolder();
  const engine = await engineOn(folder, {
    baseUrl: provider.url,
    apiKey: KEY,
    model: "my-thinker",
    headers: { "X-Team": "blue" },
    models: [
      { id: "my-thinker", reasoning: true },
      { id: "my-talker", tools: false },
    ],
  });
  onTestFinished(() => engine.stop());
  expect(await engine.session(sessionSpec("a", folder, [noteTool([])])).run(turn("hello"))).toMatchObject({ outcome: "done" });
  expect(
    await engine.session({ ...sessionSpec("b", folder, [noteTool([])]), model: "my-talker" }).run(turn("hello")),
  ).toMatchObject({ outcome: "done" });
  expect(provider.refusals()).toEqual([]);
  expect(provider.requests.at(-1)!.headers["x-team"]).toBe("blue");
  expect(provider.requests.at(-1)!.body).not.toHaveProperty("tools");
});

test("the runtime never sees the key, nor the provider's address", async () => {
  const provider = await startAnthropic({ key: KEY, script: () => ({ say: "done" }) });
  const folder = temporaryFolder();
  const engine = await engineOn(folder, {
    type: "anthropic",
    baseUrl: `${provider.origin}/v1`,
    apiKey: KEY,
    model: "claude-sonnet-4-5",
  });
  onTestFinished(() => engine.stop());
  expect(await engine.session(sessionSpec("a", folder)).run(turn("hello"))).toMatchObject({ outcome: "done" });
  const { readFileSync, readdirSync } = await import("node:fs");
  const written = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => readFileSync(`${each.parentPath}/${each.name}`, "utf8"));
  expect(written.length).toBeGreaterThan(0);
  for (const text of written) {
    expect(text).not.toContain(KEY);
    expect(text).not.toContain(provider.origin);
  }
});
