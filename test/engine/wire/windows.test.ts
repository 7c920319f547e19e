import { expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../../src/engine/port.ts";
import { turn } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import type { Script } from "../../support/providers/act.ts";
import { startAnthropic } from "../../support/providers/anthropic.ts";
import type { Provider } from "../../support/providers/core.ts";
import { startGitHubModels } from "../../support/providers/github-models.ts";
import { startLlamaCpp } from "../../support/providers/llama-cpp.ts";
import { startLmStudio } from "../../support/providers/lmstudio.ts";
import { startOllama } from "../../support/providers/ollama.ts";
import { startOpenAi } from "../../support/providers/openai.ts";
import { startVllm } from "../../support/providers/vllm.ts";
import { engineOn, noteTool, sessionSpec } from "../../support/wires.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";
const FACT = "BLUE-7731";
/** Said once each: LATER by the user at the end of a long message in the third window, OWN by the model itself. */
const LATER = "AMBER-2284";
const OWN = "GREEN-5150";
const WINDOW = 4_096;
const CODE = /\b[A-Z]+-\d{4}\b/g;
const QUESTION = "Which codes do you know?";
const codesIn = (text: string) => [...new Set(text.match(CODE) ?? [])];
const knows = (body: unknown) => JSON.stringify(body).includes(FACT);
const tooLong = (provider: Provider) =>
  provider.refusals().filter((words) => /context|too long|token/i.test(words) && !/max_tokens/.test(words));
const isSummary = (text: string) => /detailed summary of the conversation so far/.test(text);

/** Summarises as a model does: only what it was given, within the requested length, codes first. */
function summaryOf(request: string): string {
  const most = Number(/in at most (\d+) words/.exec(request)?.[1]);
  const given = /\n\n(<.*)$/s.exec(request)?.[1] ?? "";
  return `Codes: ${codesIn(given).join(" ")}. ${given.replace(CODE, "it")}`.split(/\s+/).slice(0, most).join(" ");
}

/**
 * A model that knows only what the request contains, and never repeats what it was told until it is asked. It summarises well,
 * or not at all.
 */
const talker =
  (good: boolean, say = "lorem ipsum dolor sit amet ".repeat(24)): Script =>
  ({ body, lastUser }) => {
    if (isSummary(lastUser)) return { say: good ? summaryOf(lastUser) : "They talked." };
    if (lastUser.includes(QUESTION)) return { say: `I know: ${codesIn(JSON.stringify(body)).join(" ")}` };
    return { say: lastUser.includes("the gate") ? `The gate's code is ${OWN}. ${say}` : say };
  };

interface House {
  name: string;
  start(script: Script): Promise<Provider>;
  settings(provider: Provider): Record<string, unknown>;
}
const small = { window: WINDOW, maxOutput: 512 };
const models = [{ id: "small", contextWindow: WINDOW }];
const HOUSES: House[] = [
  {
    name: "completions, told by a person",
    start: (script) => startOpenAi({ key: KEY, script, models: { small } }),
    settings: ({ url }) => ({ baseUrl: url, apiKey: KEY, model: "small", models }),
  },
  {
    name: "responses, told by a person",
    start: (script) => startOpenAi({ key: KEY, script, models: { small } }),
    settings: ({ url }) => ({ baseUrl: url, apiKey: KEY, wireApi: "responses", model: "small", models }),
  },
  {
    name: "anthropic, told by a person",
    start: (script) => startAnthropic({ key: KEY, script, models: { small: { window: WINDOW, maxOutput: 512 } } }),
    settings: ({ origin }) => ({
      type: "anthropic",
      baseUrl: origin,
      apiKey: KEY,
      model: "small",
      models,
    }),
  },
  {
    name: "vLLM, which says it",
    start: (script) => startVllm({ script, maxModelLen: WINDOW, autoToolChoice: true }),
    settings: ({ url }) => ({ baseUrl: url, model: "Qwen/Qwen2.5-7B-Instruct" }),
  },
  {
    name: "vLLM with a template that wants its turns in order",
    start: (script) => startVllm({ script, maxModelLen: WINDOW, autoToolChoice: true, alternating: true }),
    settings: ({ url }) => ({ baseUrl: url, model: "Qwen/Qwen2.5-7B-Instruct" }),
  },
  {
    name: "llama.cpp, which says it elsewhere",
    start: (script) => startLlamaCpp({ script, contextSize: WINDOW, jinja: true, listsContext: false, model: "m.gguf" }),
    settings: ({ url }) => ({ baseUrl: url, model: "m.gguf" }),
  },
  {
    name: "LM Studio, which says it elsewhere",
    start: (script) => startLmStudio({ script }),
    settings: ({ url }) => ({ baseUrl: url, model: "qwen2.5-7b-instruct" }),
  },
  {
    name: "vLLM, where nobody said it",
    start: (script) => startVllm({ script, model: "m", maxModelLen: WINDOW, autoToolChoice: true }),
    settings: ({ url }) => ({ baseUrl: url, model: "m", models: [{ id: "m", contextWindow: 200_000 }] }),
  },
  {
    name: "GitHub Models, whose tier nobody said",
    start: (script) => startGitHubModels({ token: KEY, script, maxInput: WINDOW }),
    settings: ({ url }) => ({ baseUrl: url, apiKey: KEY, model: "openai/gpt-4.1" }),
  },
  {
    name: "Ollama as a provider of one's own",
    start: (script) => startOllama({ script }),
    settings: ({ origin }) => ({ baseUrl: origin, model: "llama3.2" }),
  },
];

const chat = (index: number) => `message ${index}: ${"alpha beta gamma delta ".repeat(50)}`;

async function begin(house: House, script: Script): Promise<{ engine: Engine; provider: Provider; folder: string }> {
  const provider = await house.start(script);
  const folder = temporaryFolder();
  const engine = await engineOn(folder, house.settings(provider));
  onTestFinished(() => engine.stop());
  return { engine, provider, folder };
}

/** Talks for this many windows, then asks for the codes that were said once. */
async function talk(engine: Engine, folder: string, provider: Provider, windows = 5): Promise<string> {
  const session = engine.session(sessionSpec("talk", folder));
  await session.run(turn(`Remember this: my code is ${FACT}.`));
  await session.run(turn("Make up a code for the gate."));
  let said = 0;
  for (let index = 0; said < windows * WINDOW; index += 1) {
    const words = index === 9 ? `${chat(index)} By the way, the shed's code is ${LATER}.` : chat(index);
    const result = await session.run(turn(words));
    expect(result).toMatchObject({ outcome: "done" });
    said += (words.length + result.text.length) / 4;
  }
  const { text } = await session.run(turn(QUESTION));
  const tokens = provider.asked.map(({ inputTokens }) => inputTokens);
  expect(Math.max(...tokens)).toBeLessThanOrEqual(WINDOW);
  return text;
}

/** Ten windows on each wire; five for the other ways to learn a window. */
const LENGTHS = HOUSES.map((house, index) => ({ ...house, windows: index < 3 ? 10 : 5 }));

test.each(LENGTHS)("$windows windows of plain chat keep what was said once: $name", { timeout: 180_000 }, async (house) => {
  const { engine, provider, folder } = await begin(house, talker(true));
  const text = await talk(engine, folder, provider, house.windows);
  expect(codesIn(text).sort()).toEqual([LATER, FACT, OWN].sort());
  // If the window is known, nothing is refused; if not, each refusal teaches it.
  expect(provider.requests.flatMap(({ silently }) => silently ?? [])).toEqual([]);
  expect(tooLong(provider).length).toBeLessThanOrEqual(house.name.includes("nobody") ? 3 : 0);
});

test("a model that summarises badly does not lose what the user said", { timeout: 180_000 }, async () => {
  const { engine, provider, folder } = await begin(HOUSES[0]!, talker(false));
  expect(await talk(engine, folder, provider)).toContain(FACT);
});

test("Ollama, which cuts a prompt without a word, never has to", { timeout: 180_000 }, async () => {
  const provider = await startOllama({ script: talker(true) });
  const folder = temporaryFolder();
  const { chooseEngine } = await import("../../../src/engine/models/ladder.ts");
  const { Config } = await import("../../../src/home/config.ts");
  const config = Config.parse({ ollamaUrl: provider.origin });
  const choice = await chooseEngine(config, { IO_ENGINE: "ollama", COPILOT_MODEL: "llama3.2" });
  expect(choice.model).toBe("llama3.2:latest");
  const engine = await engineOn(folder, { baseUrl: provider.url }, { choice, config: () => config });
  onTestFinished(() => engine.stop());
  expect(await talk(engine, folder, provider)).toContain(FACT);
  expect(provider.requests.map(({ silently }) => silently).filter(Boolean)).toEqual([]);
});

test.each(HOUSES.slice(0, 4))(
  "chat with tools over five windows keeps what was said once: $name",
  { timeout: 180_000 },
  async (house) => {
    const talking = talker(true, "done");
    const { engine, provider, folder } = await begin(house, (asked, index) =>
      isSummary(asked.lastUser) || asked.afterTool || asked.lastUser.includes(QUESTION)
        ? talking(asked, index)
        : { say: "Noting.", call: [{ tool: "note", args: { text: "word ".repeat(120) } }] },
    );
    const notes: unknown[] = [];
    const session = engine.session(sessionSpec("tools", folder, [noteTool(notes)]));
    await session.run(turn(`Remember this: my code is ${FACT}.`));
    for (let index = 0; index < 38; index += 1)
      expect(await session.run(turn(`${index} ${"alpha beta gamma ".repeat(70)}`))).toMatchObject({ outcome: "done" });
    const { text } = await session.run(turn(QUESTION));
    expect(text).toContain(FACT);
    expect(notes).toHaveLength(39);
    expect(Math.max(...provider.asked.map(({ inputTokens }) => inputTokens))).toBeLessThanOrEqual(WINDOW);
    expect(tooLong(provider)).toEqual([]);
  },
);

test.each(HOUSES.slice(0, 4))(
  "one turn longer than five windows ends with its first fact: $name",
  { timeout: 180_000 },
  async (house) => {
    let calls = 0;
    const { engine, provider, folder } = await begin(house, ({ body, lastUser }) => {
      if (isSummary(lastUser)) return { say: summaryOf(lastUser) };
      calls += 1;
      return calls <= 60
        ? { say: `Step ${calls}.`, call: [{ tool: "read", args: { text: `file ${calls}` } }] }
        : { say: knows(body) ? `done with ${FACT}` : "what was it?" };
    });
    const read = { ...noteTool([]), name: "read", call: async () => ({ ok: true, text: "line of a file ".repeat(100) }) };
    const result = await engine.session(sessionSpec("long", folder, [read])).run(turn(`Work on ${FACT}.`));
    expect(result).toMatchObject({ outcome: "done", text: `done with ${FACT}` });
    expect(result.tools).toHaveLength(60);
    expect(Math.max(...provider.asked.map(({ inputTokens }) => inputTokens))).toBeLessThanOrEqual(WINDOW);
    expect(tooLong(provider)).toEqual([]);
  },
);

test("a message that no window could hold is refused in a sentence, and the conversation goes on", {
  timeout: 60_000,
}, async () => {
  const { engine, folder } = await begin(HOUSES[0]!, talker(true));
  const session = engine.session(sessionSpec("huge", folder));
  await session.run(turn(`Remember this: my code is ${FACT}.`));
  const result = await session.run(turn("word ".repeat(20_000)));
  expect(result).toMatchObject({ outcome: "failed", error: { code: "too_large" } });
  expect(result.error!.message).toMatch(/window/);
  expect((await session.run(turn("And now?"))).outcome).toBe("done");
});

test("an answer after a shortened conversation that nobody heard is found again, not asked for again", {
  timeout: 60_000,
}, async () => {
  const provider = await HOUSES[0]!.start(talker(true));
  const folder = temporaryFolder();
  const first = await engineOn(folder, HOUSES[0]!.settings(provider));
  const session = first.session(sessionSpec("heard", folder));
  let promptId: string | undefined;
  let last = { text: "", prompt: "" };
  for (let index = 0; !provider.asked.some(({ lastUser }) => isSummary(lastUser)); index += 1) {
    const onAccepted = (id: string) => {
      promptId = id;
    };
    const request = turn(chat(index), { onAccepted });
    last = { text: (await session.run(request)).text, prompt: request.prompt };
  }
  await first.stop();
  const asked = provider.asked.length;
  const second = await engineOn(folder, HOUSES[0]!.settings(provider));
  onTestFinished(() => second.stop());
  const again = second.session(sessionSpec("heard", folder));
  const found = await again.run(turn(last.prompt, { attempt: 2, interrupted: { promptId } }));
  expect(found).toMatchObject({ outcome: "done", text: last.text });
  expect(provider.asked).toHaveLength(asked);
  expect(await again.run(turn("and now?"))).toMatchObject({ outcome: "done" });
});
