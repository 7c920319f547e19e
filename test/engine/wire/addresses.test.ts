import { beforeAll, describe, expect, test } from "vitest";
import { chooseEngine } from "../../../src/engine/models/ladder.ts";
import { readList } from "../../../src/engine/models/models.ts";
import { endpointOf } from "../../../src/engine/models/provider.ts";
import { textOf } from "../../../src/engine/wire/exchange.ts";
import { createProxyChoice } from "../../../src/engine/wire/proxy.ts";
import { createHttpTransport } from "../../../src/engine/wire/transport.ts";
import { Config } from "../../../src/home/config.ts";
import { startGateway } from "../../support/gateway.ts";
import { type AtTheEnd, collectEndings } from "../../support/home.ts";
import {
  type Provider,
  startAnthropic,
  startAzure,
  startGitHubModels,
  startLlamaCpp,
  startLmStudio,
  startOllama,
  startOpenAi,
  startOpenRouter,
  startVllm,
} from "../../support/providers/index.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";
const DATED = "api-version=2025-01-01-preview";

interface House {
  name: string;
  start(atTheEnd: AtTheEnd): Promise<Provider>;
  settings: Record<string, unknown>;
  model: string;
  /** A model that its list must contain; missing if the list is not requested. */
  listed?: string;
  addresses: string[];
}

/** All forms in which people may write a provider's address. */
const forms = (host: string, base: string, beginnings: string[], paths: string[]) =>
  [...beginnings, base].flatMap((path) => [host + path, `${host}${path}/`]).concat(paths.map((path) => host + base + path));

const HOUSES: House[] = [
  {
    name: "OpenAI",
    start: (atTheEnd) => startOpenAi({ key: KEY }, atTheEnd),
    settings: { apiKey: KEY },
    model: "gpt-4o",
    listed: "gpt-4o",
    addresses: forms("http://api.openai.com", "/v1", [""], ["/chat/completions", "/responses", "/models", "//chat/completions/"]),
  },
  {
    name: "OpenAI, by responses",
    start: (atTheEnd) => startOpenAi({ key: KEY }, atTheEnd),
    settings: { apiKey: KEY, wireApi: "responses" },
    model: "gpt-5-codex",
    listed: "gpt-5-codex",
    addresses: forms("http://api.openai.com", "/v1", [""], ["/chat/completions", "/responses"]),
  },
  {
    name: "Anthropic",
    start: (atTheEnd) => startAnthropic({ key: KEY }, atTheEnd),
    settings: { type: "anthropic", apiKey: KEY },
    model: "claude-sonnet-4-5",
    listed: "claude-sonnet-4-5-20250929",
    addresses: forms("http://api.anthropic.com", "/v1", [""], ["/messages", "/messages/", "/models"]),
  },
  {
    name: "OpenRouter",
    start: (atTheEnd) => startOpenRouter({ key: KEY }, atTheEnd),
    settings: { apiKey: KEY },
    model: "openai/gpt-4o",
    listed: "google/gemma-2-9b-it",
    addresses: forms("http://openrouter.ai", "/api/v1", ["", "/api", "/v1"], ["/chat/completions", "/models"]),
  },
  {
    name: "GitHub Models",
    start: (atTheEnd) => startGitHubModels({ token: KEY }, atTheEnd),
    settings: { apiKey: KEY },
    model: "openai/gpt-4.1",
    listed: "openai/gpt-4o-mini",
    addresses: forms("http://models.github.ai", "/inference", ["", "/v1"], ["/chat/completions"]),
  },
  {
    name: "Ollama",
    start: (atTheEnd) => startOllama({}, atTheEnd),
    settings: {},
    model: "llama3.2",
    listed: "llama3.2:latest",
    addresses: forms("http://ollama.test:11434", "/v1", ["", "/api"], ["/chat/completions", "/models"]).concat(
      "http://ollama.test:11434/api/chat",
      "http://ollama.test",
    ),
  },
  {
    name: "LM Studio",
    start: (atTheEnd) => startLmStudio({}, atTheEnd),
    settings: {},
    model: "qwen2.5-7b-instruct",
    listed: "gemma-3-4b-it",
    addresses: forms("http://lmstudio.test:1234", "/v1", [""], ["/chat/completions", "/models"]),
  },
  {
    name: "vLLM",
    start: (atTheEnd) => startVllm({ key: KEY }, atTheEnd),
    settings: { apiKey: KEY },
    model: "Qwen/Qwen2.5-7B-Instruct",
    listed: "Qwen/Qwen2.5-7B-Instruct",
    addresses: forms("http://vllm.test:8000", "/v1", [""], ["/chat/completions", "/models"]),
  },
  {
    name: "llama.cpp",
    start: (atTheEnd) => startLlamaCpp({ model: "m.gguf", key: KEY }, atTheEnd),
    settings: { apiKey: KEY },
    model: "m.gguf",
    listed: "m.gguf",
    addresses: forms("http://llama.test:8080", "/v1", [""], ["/chat/completions"]).concat("http://llama.test:8080/completion"),
  },
  {
    name: "Azure",
    start: (atTheEnd) => startAzure({ key: KEY, deployments: { "my deployment": "gpt-4o" } }, atTheEnd),
    settings: { apiKey: KEY },
    model: "my deployment",
    addresses: [
      ...forms("http://x.openai.azure.com", "/openai/v1", ["", "/openai", "/v1"], ["/chat/completions", "/responses", "/models"]),
      ...forms("http://x.cognitiveservices.azure.com", "/openai/v1", [""], ["/chat/completions?api-version=preview"]),
      ...forms("http://x.services.ai.azure.com", "/api/projects/p", [""], ["/openai/v1", "/openai/v1/responses"]),
      `http://x.openai.azure.com/openai/deployments/my%20deployment/chat/completions?${DATED}`,
      `http://x.openai.azure.com/openai/deployments/my%20deployment?${DATED}`,
      "http://x.openai.azure.com/openai/deployments/my%20deployment",
      `http://x.openai.azure.com/openai?${DATED}`,
      `http://x.openai.azure.com/?${DATED}`,
      `http://x.openai.azure.com/openai/responses?${DATED}`,
      "http://x.openai.azure.com/openai/v1/?api-version=latest",
      `http://x.cognitiveservices.azure.com/openai/deployments/my%20deployment/chat/completions?${DATED}`,
      "http://x.services.ai.azure.com/models",
      "http://x.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
    ],
  },
  {
    name: "Azure, by responses",
    start: (atTheEnd) => startAzure({ key: KEY, deployments: { mine: "gpt-5-codex" } }, atTheEnd),
    settings: { apiKey: KEY, wireApi: "responses" },
    model: "mine",
    addresses: [
      "http://x.openai.azure.com",
      `http://x.openai.azure.com/openai/responses?${DATED}`,
      `http://x.openai.azure.com/openai/deployments/mine/chat/completions?${DATED}`,
    ],
  },
  {
    name: "Azure with a version of one's own",
    start: (atTheEnd) => startAzure({ key: KEY, deployments: { mine: "gpt-4o" } }, atTheEnd),
    settings: { apiKey: KEY, apiVersion: "2024-10-21" },
    model: "mine",
    addresses: ["http://x.openai.azure.com", "http://x.openai.azure.com/openai/v1", "http://x.services.ai.azure.com/models"],
  },
];

describe.each(HOUSES)("$name", ({ start, settings, model, listed, addresses }) => {
  let provider: Provider;
  let proxy: string;
  beforeAll(async () => {
    const { atTheEnd, end } = collectEndings();
    provider = await start(atTheEnd);
    ({ url: proxy } = await startGateway(provider.origin, atTheEnd));
    return end;
  });

  test.each(addresses)("is asked and listed at %s", async (baseUrl) => {
    const config = Config.parse({ provider: { ...settings, baseUrl, proxy, model } });
    const choice = await chooseEngine(config, {});
    const endpoint = endpointOf(choice.provider!);
    const transport = createHttpTransport(createProxyChoice({ env: {}, always: proxy }));
    const from = provider.requests.length;
    const answer = await transport({
      method: "POST",
      url: endpoint.ask(wireOf(choice.provider!), model),
      headers: endpoint.headers,
      body: JSON.stringify({ model, ...question(wireOf(choice.provider!)) }),
      signal: AbortSignal.timeout(10_000),
    });
    expect(await textOf(answer)).toContain("right.");
    if (listed !== undefined) expect((await readList(endpoint, transport)).models.map(({ id }) => id)).toContain(listed);
    expect(provider.requests.slice(from).flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
  });
});

test("an address that holds the deployment names the model, and one behind a gateway keeps the gateway's path", async () => {
  const at = async (baseUrl: string) => {
    const { provider, model, named } = await chooseEngine(Config.parse({ provider: { baseUrl } }), {});
    return { model, named, url: endpointOf(provider!).ask("completions", model), type: provider!.type };
  };
  expect(await at(`https://x.openai.azure.com/openai/deployments/my%20gpt/chat/completions?${DATED}`)).toMatchObject({
    model: "my gpt",
    named: true,
    url: `https://x.openai.azure.com/openai/deployments/my%20gpt/chat/completions?${DATED}`,
  });
  expect(await at(`https://gw.azure-api.net/team/ai/openai/deployments/d/chat/completions?${DATED}`)).toMatchObject({
    type: "azure",
    model: "d",
    url: `https://gw.azure-api.net/team/ai/openai/deployments/d/chat/completions?${DATED}`,
  });
  expect((await at("https://x.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview")).url).toBe(
    "https://x.services.ai.azure.com/openai/v1/chat/completions",
  );
  expect((await at("https://gateway.example/team/v1/")).url).toBe("https://gateway.example/team/v1/chat/completions");
  expect((await at("https://api.groq.com")).url).toBe("https://api.groq.com/openai/v1/chat/completions");
  expect((await at("https://generativelanguage.googleapis.com/v1beta/openai/")).url).toBe(
    "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
  );
  expect((await at("https://x.services.ai.azure.com/anthropic/v1/messages")).type).toBe("anthropic");
});

type Kind = { type: string; wireApi: string };
const wireOf = ({ type, wireApi }: Kind) =>
  type === "anthropic" ? "messages" : wireApi === "responses" ? "responses" : "completions";

function question(wire: ReturnType<typeof wireOf>): object {
  if (wire === "responses") return { input: "Hello." };
  const messages = [{ role: "user", content: "Hello." }];
  return wire === "messages" ? { messages, max_tokens: 100 } : { messages };
}
