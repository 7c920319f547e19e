import { createServer } from "node:http";
import { type AddressInfo, createServer as createPlainServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { model as checkModel } from "../../src/daemon/doctor.ts";
import { pathsOf } from "../../src/home/paths.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import type { Finding } from "../../src/protocol/doctor.ts";
import { runIo } from "../support/daemon.ts";
import { startGateway } from "../support/gateway.ts";
import { type AtTheEnd, temporaryHome } from "../support/home.ts";
import {
  type Act,
  type Provider,
  type Script,
  startAnthropic,
  startAzure,
  startGitHubModels,
  startLlamaCpp,
  startLmStudio,
  startOllama,
  startOpenAi,
  startOpenRouter,
  startVllm,
} from "../support/providers/index.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";
const SHELL_VARIABLE = ["$", "{OPENAI_API_KEY}"].join("");
const WRONG = "sk-proj-wrong-key-of-somebody-else-1";

/** A model that does as it is told. */
const obeys: Script = ({ afterTool }) => (afterTool ? { say: "OK" } : { call: [{ tool: "report", args: { word: "ready" } }] });
const always =
  (act: Act): Script =>
  () =>
    act;

async function finding(
  provider: Record<string, unknown> | undefined,
  env: NodeJS.ProcessEnv = {},
  atTheEnd: AtTheEnd = onTestFinished,
): Promise<Finding> {
  const home = temporaryHome(provider ? { provider } : { ollamaUrl: "http://127.0.0.1:9" }, atTheEnd);
  const all = { PATH: process.env.PATH, HOME: home, IO_HOME: home, COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH, ...env };
  const found = (await checkModel({ paths: pathsOf(all), env: all })).at(-1)!;
  const said = `${found.found} ${found.remedy ?? ""}`;
  for (const never of [home, packageRoot, "io-doctor-", "be reached", "not reach", KEY, WRONG, "[object", "undefined"])
    expect(said).not.toContain(never);
  if (found.state !== "ok") expect(found.remedy).toBeTruthy();
  expect(found.check).toBe("model");
  return found;
}

interface Fine {
  name: string;
  start: (atTheEnd: AtTheEnd) => Promise<Provider>;
  provider: (server: Provider) => Record<string, unknown>;
  found: RegExp;
}

const FINE: Fine[] = [
  {
    name: "OpenAI by responses, told by its name",
    start: () => startOpenAi({ key: KEY, script: obeys }),
    provider: ({ origin }) => ({ baseUrl: origin, apiKey: KEY, wireApi: "responses", model: "gpt-5.6-terra" }),
    found:
      /^gpt-5\.6-terra answered at \S+\/v1\/responses \(provider\.baseUrl in config\.json\) and called a tool; its window is taken as 272,000 tokens, as is usual/,
  },
  {
    name: "OpenAI by completions, told by a person",
    start: () => startOpenAi({ key: KEY, script: obeys }),
    provider: ({ origin }) => ({
      baseUrl: origin,
      apiKey: KEY,
      model: "gpt-4o",
      models: [{ id: "gpt-4o", contextWindow: 9_000 }],
    }),
    found: /^gpt-4o-2024-08-06 answered for "gpt-4o" at \S+\/v1\/chat\/completions .* 9,000 tokens, from provider\.models/,
  },
  {
    name: "Anthropic",
    start: () => startAnthropic({ key: KEY, script: obeys }),
    provider: ({ origin }) => ({ type: "anthropic", baseUrl: origin, apiKey: KEY, model: "claude-sonnet-4-5" }),
    found: /^claude-sonnet-4-5-\d+ answered for "claude-sonnet-4-5" at \S+\/v1\/messages .* called a tool/,
  },
  {
    name: "Azure, by the portal's target URI",
    start: () => startAzure({ key: KEY, script: obeys, deployments: { mine: "gpt-4o" } }),
    provider: ({ origin }) => ({
      type: "azure",
      baseUrl: `${origin}/openai/deployments/mine/chat/completions?api-version=2025-01-01-preview`,
      apiKey: KEY,
    }),
    found: /^gpt-4o-2024-08-06 answered for "mine" at \S+\/openai\/deployments\/mine\/chat\/completions .* a guess/,
  },
  {
    name: "OpenRouter",
    start: () => startOpenRouter({ key: KEY, script: obeys }),
    provider: ({ url }) => ({ baseUrl: url, apiKey: KEY, model: "anthropic/claude-sonnet-4.5" }),
    found: /^anthropic\/claude-sonnet-4\.5 answered at .* 1,000,000 tokens, as the provider says/,
  },
  {
    name: "Ollama as a provider",
    start: () => startOllama({ script: obeys }),
    provider: ({ origin }) => ({ baseUrl: origin, model: "llama3.2" }),
    found: /^llama3\.2:latest answered at \S+\/v1\/chat\/completions .* called a tool; .* 4,096 tokens, as the provider says/,
  },
  {
    name: "LM Studio",
    start: () => startLmStudio({ script: obeys }),
    provider: ({ url }) => ({ baseUrl: url, model: "qwen2.5-7b-instruct" }),
    found: /^qwen2\.5-7b-instruct answered at .* 4,096 tokens, as the provider says/,
  },
  {
    name: "vLLM",
    start: () => startVllm({ script: obeys, autoToolChoice: true }),
    provider: ({ url }) => ({ baseUrl: url, model: "Qwen/Qwen2.5-7B-Instruct" }),
    found: /^Qwen\/Qwen2\.5-7B-Instruct answered at .* 32,768 tokens, as the provider says/,
  },
  {
    name: "llama.cpp",
    start: () => startLlamaCpp({ script: obeys, model: "m.gguf", listsContext: false }),
    provider: ({ url }) => ({ baseUrl: url, model: "m.gguf" }),
    found: /^m\.gguf answered at .* 4,096 tokens, as the provider says/,
  },
  {
    name: "a model that is known to have no tools",
    start: () => startOllama({ script: always({ say: "OK" }) }),
    provider: ({ url }) => ({ baseUrl: url, model: "gemma3:1b", models: [{ id: "gemma3:1b", tools: false }] }),
    found: /^gemma3:1b answered at .*, without tools as provider\.models says; its window is taken as 4,096/,
  },
];

test.each(FINE)("$name: which model answered, where, and with what window", async ({ start, provider, found }) => {
  const server = await start(onTestFinished);
  const result = await finding(provider(server));
  expect(result).toMatchObject({ state: "ok", found: expect.stringMatching(found) });
  const asked = server.requests.filter(({ text }) => text.includes("ready"));
  expect(asked.every(({ body }) => (body as { stream?: boolean }).stream === true)).toBe(true);
  expect(server.refusals().filter((words) => !/reasoning|temperature/.test(words))).toEqual([]);
});

test("GitHub Models is asked and listed by its real name", async () => {
  const server = await startGitHubModels({ token: KEY, script: obeys });
  const { url } = await startGateway(server.origin);
  const provider = { baseUrl: "http://models.github.ai/inference", apiKey: KEY, model: "openai/gpt-4.1", proxy: url };
  expect(await finding(provider)).toMatchObject({
    state: "ok",
    found: expect.stringMatching(
      /^gpt-4\.1-2025-04-14 answered for "openai\/gpt-4\.1" at http:\/\/models\.github\.ai.* as the provider says/,
    ),
  });
  expect(await finding({ ...provider, model: "gpt-4.1" })).toMatchObject({
    state: "failed",
    found: expect.stringContaining("does not have the model"),
    remedy: expect.stringContaining("There are: openai/gpt-4.1"),
  });
});

interface Wrong extends Omit<Fine, "found"> {
  env?: NodeJS.ProcessEnv;
  state?: Finding["state"];
  /** How many requests are sent before giving up. */
  asks?: number;
  found: RegExp;
  remedy: RegExp;
}
const openAi = (atTheEnd: AtTheEnd, script: Script = obeys) => startOpenAi({ key: KEY, script }, atTheEnd);
const plain = ({ origin }: Provider) => ({ baseUrl: origin, model: "gpt-4o", apiKey: KEY });

const WRONG_ONES: Wrong[] = [
  {
    name: "no key where one is needed",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o" }),
    found:
      /"gpt-4o" \(provider\.model in config\.json\) at \S+ \(provider\.baseUrl in config\.json\): .*credentials \(HTTP 401: You didn't provide an API key/,
    remedy: /^No key is set: set provider\.apiKeyEnv in config\.json to the name of the variable/,
  },
  {
    name: "a variable that nothing refers to",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o" }),
    env: { OPENAI_API_KEY: KEY },
    found: /HTTP 401/,
    remedy: /^OPENAI_API_KEY is set, but nothing refers to it: set provider\.apiKeyEnv in config\.json to "OPENAI_API_KEY"\.$/,
  },
  {
    name: "a wrong key from a variable",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o", apiKeyEnv: "MY_KEY" }),
    env: { MY_KEY: WRONG },
    found: /HTTP 401: Incorrect API key provided/,
    remedy: /MY_KEY, named by provider\.apiKeyEnv in config\.json/,
  },
  {
    name: "a key of another house",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o", apiKey: "sk-ant-api03-of-another-house-0000" }),
    found: /HTTP 401/,
    remedy:
      /^The key \(provider\.apiKey in config\.json\) looks like one of Anthropic's, but the address \(provider\.baseUrl in config\.json\) is 127/,
  },
  {
    name: "OpenAI's key at Anthropic's",
    start: (atTheEnd) => startAnthropic({ key: "sk-ant-right" }, atTheEnd),
    provider: ({ origin }) => ({ type: "anthropic", baseUrl: origin, model: "claude-sonnet-4-5", apiKey: KEY }),
    found: /HTTP 401: invalid x-api-key/,
    remedy: /looks like one of OpenAI's, but the address .* is Anthropic's/,
  },
  {
    name: "a variable's name in the place of a key",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o", apiKey: "OPENAI_API_KEY" }),
    found: /HTTP 401/,
    remedy:
      /^The key \(provider\.apiKey in config\.json\) looks like the name of a variable.*set provider\.apiKeyEnv in config\.json to "OPENAI_API_KEY"/,
  },
  {
    name: "a shell's way to write a variable",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o", apiKey: SHELL_VARIABLE }),
    found: /HTTP 401/,
    remedy: /set provider\.apiKeyEnv in config\.json to "OPENAI_API_KEY"/,
  },
  {
    name: "a key in the place of a variable's name",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o", apiKeyEnv: KEY }),
    found: /^provider\.apiKeyEnv in config\.json holds a key and not the name of a variable\.$/,
    remedy: /^Move it to provider\.apiKey/,
  },
  {
    name: "a variable that is not set",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: origin, model: "gpt-4o", apiKeyEnv: "OPENAI_KEY" }),
    env: { OPENAI_API_KEY: KEY },
    found: /^provider\.apiKeyEnv in config\.json: the variable OPENAI_KEY is not set\.$/,
    remedy: /^Set it where IO is started, or name another there\. Set are: OPENAI_API_KEY\.$/,
  },
  {
    name: "a model that OpenAI does not have",
    start: openAi,
    provider: (server) => ({ ...plain(server), model: "gpt-4o-minni" }),
    found: /does not have the model \("gpt-4o-minni": The model/,
    remedy:
      /^Name another: the name is set by provider\.model in config\.json\. There are: gpt-4o-mini,(?!.*(?:embed|whisper|tts))/,
  },
  {
    name: "a model that Anthropic does not have",
    start: (atTheEnd) => startAnthropic({ key: KEY }, atTheEnd),
    provider: ({ origin }) => ({ type: "anthropic", baseUrl: origin, model: "claude-sonet-4-5", apiKey: KEY }),
    found: /does not have the model/,
    remedy: /There are: .*claude-sonnet-4-5-20250929/,
  },
  {
    name: "a model that OpenRouter does not have",
    start: (atTheEnd) => startOpenRouter({ key: KEY }, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "gpt-4o", apiKey: KEY }),
    found: /does not have the model .*not a valid model ID/,
    remedy: /There are: openai\/gpt-4o/,
  },
  {
    name: "a model that was not pulled",
    start: (atTheEnd) => startOllama({}, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "llama3.3" }),
    found: /does not have the model/,
    remedy: /There are: llama3\.2:latest(?!.*nomic).*Or run "ollama pull llama3\.3"\./,
  },
  {
    name: "a model that vLLM does not serve",
    start: (atTheEnd) => startVllm({}, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "qwen" }),
    found: /does not have the model/,
    remedy: /There are: Qwen\/Qwen2\.5-7B-Instruct/,
  },
  {
    name: "a model that LM Studio does not have",
    start: (atTheEnd) => startLmStudio({}, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "qwen2.5" }),
    found: /does not have the model/,
    remedy: /There are: qwen2\.5-7b-instruct(?!.*embedding)/,
  },
  {
    name: "a deployment that is not there",
    start: (atTheEnd) => startAzure({ key: KEY }, atTheEnd),
    provider: ({ origin }) => ({ type: "azure", baseUrl: origin, model: "gpt-4o", apiKey: KEY }),
    found: /does not have the model/,
    remedy: /Azure asks by the deployment's name, not the model's: set it by provider\.model in config\.json/,
  },
  {
    name: "an embedder",
    start: (atTheEnd) => startOllama({}, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "nomic-embed-text" }),
    found: /is not one to talk with/,
    remedy: /^Name another: the name is set by provider\.model in config\.json\. There are: llama3\.2:latest/,
  },
  {
    name: "a model of Ollama's without tools",
    start: (atTheEnd) => startOllama({}, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "gemma3:1b" }),
    found: /cannot use tools, and IO works by tools/,
    remedy: /^Name another with provider\.model in config\.json, or set "tools": false/,
  },
  {
    name: "a model of OpenRouter's without tools",
    start: (atTheEnd) => startOpenRouter({ key: KEY }, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "google/gemma-2-9b-it", apiKey: KEY }),
    found: /cannot use tools/,
    remedy: /"tools": false/,
  },
  {
    name: "a model of OpenAI's without tools",
    start: openAi,
    provider: (server) => ({ ...plain(server), model: "gpt-5-chat-latest" }),
    found: /cannot use tools/,
    remedy: /"tools": false/,
  },
  {
    name: "vLLM that was started without tools",
    start: (atTheEnd) => startVllm({}, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "Qwen/Qwen2.5-7B-Instruct" }),
    found: /cannot use tools/,
    remedy: /--enable-auto-tool-choice/,
  },
  {
    name: "llama.cpp that was started without tools",
    start: (atTheEnd) => startLlamaCpp({ jinja: false, model: "m.gguf" }, atTheEnd),
    asks: 1,
    provider: ({ url }) => ({ baseUrl: url, model: "m.gguf" }),
    found: /cannot use tools/,
    remedy: /--jinja/,
  },
  {
    name: "a model of the other wire",
    start: openAi,
    provider: (server) => ({ ...plain(server), model: "gpt-5-codex" }),
    found: /did not accept the request .*only supported in v1\/responses/,
    remedy: /^Set provider\.wireApi in config\.json to "responses"\.$/,
  },
  {
    name: "a model that does not call its tool",
    start: (atTheEnd) => openAi(atTheEnd, always({ say: "OK" })),
    provider: plain,
    state: "warning",
    found: /^gpt-4o-2024-08-06 answered for "gpt-4o" at .*, but did not call the tool/,
    remedy: /IO works by tools.*provider\.model in config\.json/,
  },
  {
    name: "a model that writes its call down",
    start: (atTheEnd) =>
      openAi(atTheEnd, always({ say: '<tool_call>{"name": "report", "arguments": {"word": "ready"}}</tool_call>' })),
    provider: plain,
    state: "warning",
    found: /did not call the tool/,
    remedy: /wrote the call down as text.*--tool-call-parser/,
  },
  {
    name: "a wrong path",
    start: openAi,
    provider: ({ origin }) => ({ baseUrl: `${origin}/v2`, model: "gpt-4o", apiKey: KEY }),
    found: /at \S+\/v2\/chat\/completions .*not a model's API \(HTTP 404: Invalid URL/,
    remedy: /^Correct the address \(provider\.baseUrl in config\.json\)/,
  },
  {
    name: "a page in place of an API",
    start: (atTheEnd) => startOpenRouter({ key: KEY }, atTheEnd),
    provider: ({ origin }) => ({ baseUrl: `${origin}/docs`, model: "openai/gpt-4o", apiKey: KEY }),
    found: /not a model's API \(a web page came in place of an answer\)/,
    remedy: /^Correct the address/,
  },
  {
    name: "LM Studio's 200 for a wrong path",
    start: (atTheEnd) => startLmStudio({}, atTheEnd),
    provider: ({ origin }) => ({ baseUrl: `${origin}/api`, model: "qwen2.5-7b-instruct" }),
    found: /not a model's API .*Unexpected endpoint/,
    remedy: /^Correct the address/,
  },
  {
    name: "no credit",
    start: (atTheEnd) => startOpenRouter({ key: KEY, affordable: 10 }, atTheEnd),
    provider: ({ url }) => ({ baseUrl: url, model: "openai/gpt-4o", apiKey: KEY }),
    found: /no credit or quota left \(HTTP 402/,
    remedy: /^Add credit there.*provider\.apiKey in config\.json.*maxOutputTokens/,
  },
  {
    name: "no quota",
    start: (atTheEnd) => openAi(atTheEnd, always({ busy: "quota" })),
    provider: plain,
    asks: 1,
    found: /no credit or quota left \(HTTP 429: You exceeded your current quota/,
    remedy: /^Add credit there/,
  },
  {
    name: "a key that may not",
    start: (atTheEnd) => openAi(atTheEnd, always({ status: 403, message: "Project does not have access to model" })),
    provider: plain,
    found: /HTTP 403: Project does not have access/,
    remedy: /^The key is provider\.apiKey in config\.json: see what it is allowed to do/,
  },
  {
    name: "a request that is refused with the key in its words",
    start: (atTheEnd) => openAi(atTheEnd, always({ status: 400, message: `the key ${KEY} is not for this` })),
    provider: plain,
    found: /did not accept the request \(HTTP 400: the key \[secret\] is not for this\)\.$/,
    remedy: /in brackets is the provider's own word.*provider\.model in config\.json/,
  },
  {
    name: "a rate limit",
    start: (atTheEnd) => openAi(atTheEnd, always({ busy: "rate", retryAfter: 120 })),
    provider: plain,
    asks: 1,
    found: /limiting the rate/,
    remedy: /wait|Wait/,
  },
  {
    name: "a provider that fails",
    start: (atTheEnd) => openAi(atTheEnd, always({ status: 500, message: "The server had an error" })),
    provider: plain,
    found: /provider is failing \(HTTP 500: The server had an error/,
    remedy: /^Try again later, or use another\.$/,
  },
  {
    name: "a gateway whose provider is down",
    start: (atTheEnd) => openAi(atTheEnd, always({ html: 502 })),
    provider: plain,
    found: /provider is failing \(HTTP 502: a web page/,
    remedy: /^Try again later/,
  },
];

// Concurrent, because much of their time is spent waiting for the runtime's retries.
test.concurrent.for(WRONG_ONES)("$name is told with the setting and what to do", { timeout: 60_000 }, async (wrong, test) => {
  const server = await wrong.start(test.onTestFinished);
  const { state = "failed", found, remedy } = wrong;
  expect(await finding(wrong.provider(server), wrong.env, test.onTestFinished)).toMatchObject({
    state,
    found: expect.stringMatching(found),
    remedy: expect.stringMatching(remedy),
  });
  const asks = server.requests.filter(({ method, path }) => method === "POST" && !path.startsWith("/api/"));
  if (wrong.asks !== undefined) expect(asks).toHaveLength(wrong.asks);
});

test("nothing that listens, a name that is not there, and TLS where there is none", { timeout: 120_000 }, async () => {
  const server = createServer((_, response) => void response.end("hello"));
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => void server.close());
  const closed = createPlainServer();
  await new Promise<void>((ready) => closed.listen(0, "127.0.0.1", ready));
  const gone = (closed.address() as AddressInfo).port;
  await new Promise<void>((done) => void closed.close(() => done()));

  const { port } = server.address() as AddressInfo;
  const [nobody, nowhere, plainly] = await Promise.all([
    finding({ baseUrl: `http://127.0.0.1:${gone}/v1`, model: "m" }),
    finding({ baseUrl: "http://models.invalid/v1", model: "m" }),
    finding({ baseUrl: `https://127.0.0.1:${port}/v1`, model: "m" }),
  ]);
  expect(nobody).toMatchObject({
    found: expect.stringMatching(/no answer came .*\(nothing listens at 127\.0\.0\.1:\d+\)/),
    remedy: "Start it, or correct its address (provider.baseUrl in config.json).",
  });
  expect(nowhere).toMatchObject({
    found: expect.stringContaining("(the name models.invalid could not be looked up)"),
    remedy: expect.stringMatching(/^(?:Correct the name in its address \(provider\.baseUrl|Check this machine's network)/),
  });
  expect(plainly).toMatchObject({
    found: expect.stringContaining("does not speak TLS"),
    remedy: expect.stringMatching(/^Write http:\/\/ in place of https:\/\/ in its address \(provider\.baseUrl/),
  });
});

test("the environment's provider is told by the environment's names", async () => {
  const server = await openAi(onTestFinished);
  const env = { COPILOT_PROVIDER_BASE_URL: server.origin, COPILOT_MODEL: "gpt-4o", OPENAI_API_KEY: KEY };
  expect(await finding(undefined, env)).toMatchObject({
    found: expect.stringMatching(/"gpt-4o" \(COPILOT_MODEL\) at \S+ \(COPILOT_PROVIDER_BASE_URL\)/),
    remedy: "OPENAI_API_KEY is set, but nothing refers to it: set COPILOT_PROVIDER_API_KEY to the value of OPENAI_API_KEY.",
  });
  expect(await finding(undefined, { ...env, COPILOT_PROVIDER_API_KEY: ` ${KEY}\n` })).toMatchObject({ state: "ok" });
});

test("a key that is set while the rehearsal model plays is told of", async () => {
  expect(await finding(undefined, { ANTHROPIC_API_KEY: KEY })).toMatchObject({
    state: "warning",
    remedy: expect.stringMatching(/^ANTHROPIC_API_KEY is set, but nothing refers to it: run "io setup"/),
  });
  expect(await finding(undefined)).toMatchObject({ state: "warning", remedy: expect.stringMatching(/^Run "io setup"/) });
});

test("the command shows the finding with its remedy below it, and ends with 1", async () => {
  const server = await openAi(onTestFinished);
  const key = "mistyped-key-of-somebody-0123";
  const home = temporaryHome({ provider: { baseUrl: server.origin, model: "gpt-4o", apiKey: key } });
  const { code, stdout } = await runIo(["doctor"], home);
  expect(code).toBe(1);
  expect(stdout).toMatch(/FAIL {2}model {5}"gpt-4o" .*HTTP 401.*\n +Check the key \(provider\.apiKey in config\.json\)/);
  expect(stdout).not.toContain(key);
});
