import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PRESETS } from "../../src/engine/models/presets.ts";
import { runIo } from "../support/daemon.ts";
import { startGateway } from "../support/gateway.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import {
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
const obeys: Script = ({ afterTool }) => (afterTool ? { say: "OK" } : { call: [{ tool: "report", args: { word: "ready" } }] });
const config = (home: string) => JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as unknown;
const setup = async (answers: string[], env: NodeJS.ProcessEnv = {}, home = temporaryHome()) => {
  const result = await runIo(["setup"], home, env, answers.map((line) => `${line}\n`).join(""));
  return { ...result, home, config: config(home) };
};

test("setup takes its answers from a pipe and writes a config that only its owner can read", async () => {
  const home = join(temporaryFolder(), "new", "home");
  const answers = ["other", "https://models.example/v1", "MODELS_KEY", "model-x", "4000", "no"];
  const result = await runIo(["setup"], home, {}, `${answers.join("\n")}\n`);
  expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("provider, port set") });
  expect(result.stderr).toContain("MODELS_KEY is not set here");
  expect(config(home)).toEqual({
    provider: { type: "openai", baseUrl: "https://models.example/v1", model: "model-x", apiKeyEnv: "MODELS_KEY" },
    port: 4000,
  });
  expect((statSync(join(home, "config.json")).mode & 0o777).toString(8)).toBe("600");
});

test("what is not answered stays as it is, Telegram's settings too, and none takes the provider away", async () => {
  const telegram = { telegramEnabled: true, telegramBotToken: "1:bot-secret", authorizedUserId: 42 };
  const provider = {
    ...{ type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: "sk-ant-secret-of-somebody", model: "m" },
    ...{ headers: { "x-team": "blue" }, models: [{ id: "m", contextWindow: 9_000 }] },
  };
  const home = temporaryHome({ provider, port: 4000, ...telegram });
  const kept = config(home);
  for (const answers of [[], ["", "", "", "", "", "no"]]) {
    const same = await setup(answers, {}, home);
    expect(same).toMatchObject({ code: 0, config: kept, stdout: expect.stringContaining("nothing but the defaults") });
    expect(`${same.stdout}${same.stderr}`).not.toMatch(/secret|[Tt]elegram/);
  }
  expect((await setup(["", "", "", "another"], {}, home)).config).toMatchObject({ provider: { ...provider, model: "another" } });
  expect((await setup(["none"], {}, home)).config).toEqual({ port: 4000, ...telegram });
});

test("setup --yes asks nothing and takes the defaults", async () => {
  const home = join(temporaryFolder(), "home");
  const result = await runIo(["setup", "--yes", "--json"], home, { OPENAI_API_KEY: KEY });
  expect(result).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(result.stdout)).toEqual({ path: join(home, "config.json"), changed: [] });
  expect(config(home)).toEqual({});
});

test("an answer that cannot be is exit 2 and changes nothing, and a broken config is left as it is", async () => {
  const home = temporaryHome({ port: 5000 });
  const wrong = async (...answers: string[]) => {
    const result = await setup(answers, {}, home);
    expect(result).toMatchObject({ code: 2, stdout: "", config: { port: 5000 } });
    return result.stderr;
  };
  expect(await wrong("", "", "99999")).toContain("port: 99999 is not allowed");
  expect(await wrong("ftp://x")).toContain("provider.baseUrl");
  expect(await wrong("other", "ftp://x")).toContain("provider.baseUrl");
  expect(await wrong("opnai")).toContain('No provider is called "opnai". Did you mean "openai"?');
  // The number after the last preset means none of them.
  const most = PRESETS.length + 1;
  expect(await wrong(`${most + 1}`)).toContain(`Allowed: 1 to ${most}, openai, azure`);
  expect(await wrong("azure", "")).toContain("Azure OpenAI or Foundry needs an address");
  writeFileSync(join(home, "config.json"), "{ broken");
  expect(await runIo(["setup", "--yes"], home)).toMatchObject({ code: 2 });
  expect(readFileSync(join(home, "config.json"), "utf8")).toBe("{ broken");
  expect(existsSync(join(home, "daemon.json"))).toBe(false);
});

describe("by provider, asked and tried for real", { timeout: 60_000 }, () => {
  test("OpenAI: a variable that is set is taken by Enter, a model by its number, and the answer's own name is told", async () => {
    const server = await startOpenAi({ key: KEY, script: obeys });
    const at = `${server.origin}/v1/chat/completions`;
    const listed = (await setup(["1", at, "", "", "", "no"], { OPENAI_API_KEY: KEY })).stderr;
    expect(listed).toMatch(/1 {2}openai +OpenAI \(OPENAI_API_KEY is set\)\n/);
    expect(listed).not.toMatch(/embedding|whisper|dall-e|gpt-4o-2024/);
    const number = /(\d+) {2}gpt-4o\n/.exec(listed)![1]!;
    const { code, stdout, stderr, config } = await setup(["1", at, "", number, "", ""], { OPENAI_API_KEY: KEY });
    expect(config).toEqual({
      provider: { type: "openai", baseUrl: at, wireApi: "responses", apiKeyEnv: "OPENAI_API_KEY", model: "gpt-4o" },
    });
    expect(stdout).toMatch(/The model works: gpt-4o-2024-08-06 answered for "gpt-4o" at \S+\/v1\/responses .* called a tool/);
    expect(code).toBe(0);
    expect(`${stdout}${stderr}`).not.toContain(KEY);
  });

  test("OpenAI: a wrong key is told before the model is asked for, and the trial fails with the remedy", async () => {
    const server = await startOpenAi({ key: KEY });
    const { code, stdout, stderr } = await setup(["openai", server.origin, "sk-proj-mistyped-0123456789", "gpt-4o", "", "yes"]);
    expect(stderr).toMatch(/could not be listed: .*HTTP 401: Incorrect API key/);
    expect(stdout).toMatch(/The model does not answer: .*HTTP 401.*\n.*provider\.apiKey in config\.json/);
    expect(code).toBe(1);
    expect(`${stdout}${stderr}`).not.toContain("mistyped-0123456789");
  });

  test("Azure: the portal's target URI says deployment and version, an endpoint asks for the deployment", async () => {
    const server = await startAzure({ key: KEY, script: obeys, deployments: { mine: "gpt-4o" } });
    const uri = `${server.origin}/openai/deployments/mine/chat/completions?api-version=2025-01-01-preview`;
    const byUri = await setup(["azure", uri, KEY, "", "", "yes"]);
    expect(byUri.config).toEqual({ provider: { type: "azure", baseUrl: uri, apiKey: KEY } });
    expect(byUri.stdout).toContain('gpt-4o-2024-08-06 answered for "mine" at');
    const byName = await setup(["2", server.origin, "", "mine", "", "yes"], { AZURE_OPENAI_API_KEY: KEY });
    expect(byName.config).toEqual({
      provider: { type: "azure", baseUrl: server.origin, apiKeyEnv: "AZURE_OPENAI_API_KEY", model: "mine" },
    });
    expect(byName.stdout).toContain("The model works");
    const responses = `${server.origin}/openai/responses?api-version=2025-04-01-preview`;
    const byResponses = await setup(["azure", responses, KEY, "mine", "", "yes"]);
    expect(byResponses).toMatchObject({
      config: { provider: { wireApi: "responses" } },
      stdout: expect.stringContaining("/openai/responses"),
    });
  });

  test("Anthropic", async () => {
    const server = await startAnthropic({ key: "sk-ant-right-key-for-the-tests", script: obeys });
    const answers = ["anthropic", `${server.origin}/v1`, "", "claude-sonnet-4-5", "", "yes"];
    const { config, stdout, stderr } = await setup(answers, { ANTHROPIC_API_KEY: "sk-ant-right-key-for-the-tests" });
    expect(config).toMatchObject({ provider: { type: "anthropic", apiKeyEnv: "ANTHROPIC_API_KEY", model: "claude-sonnet-4-5" } });
    expect(stderr).toMatch(/claude-sonnet-4-5-20250929 \([\d,]+ tokens\)/);
    expect(stderr).not.toContain("is not in its list");
    expect(stdout).toContain("The model works");
  });

  test("OpenRouter and GitHub Models, by their own names", async () => {
    const router = await startOpenRouter({ key: "sk-or-v1-right", script: obeys });
    const proxy = { HTTP_PROXY: (await startGateway(router.origin)).url };
    const first = await setup(["OpenRouter", "http://openrouter.ai", "sk-or-v1-right", "openai/gpt-4o", "", "yes"], proxy);
    expect(first.stderr).toContain("google/gemma-2-9b-it (8,192 tokens, no tools)");
    expect(first.stdout).toContain("The model works: openai/gpt-4o answered at http://openrouter.ai/api/v1/chat/completions");

    const github = await startGitHubModels({ token: "github_pat_right_token", script: obeys });
    const env = { HTTP_PROXY: (await startGateway(github.origin)).url, GITHUB_TOKEN: "github_pat_right_token" };
    const second = await setup(["5", "http://models.github.ai", "", "openai/gpt-4o-mini", "", "yes"], env);
    expect(second.config).toMatchObject({ provider: { apiKeyEnv: "GITHUB_TOKEN", model: "openai/gpt-4o-mini" } });
    expect(second.stdout).toContain('The model works: gpt-4o-mini-2024-07-18 answered for "openai/gpt-4o-mini"');
  });

  test("Ollama: what is pulled is listed without embedders, and one with tools is the default", async () => {
    const server = await startOllama({ script: obeys });
    const { config, stdout, stderr } = await setup(["ollama", server.origin, "", "", "yes"]);
    expect(stderr).toMatch(/1 {2}llama3\.2:latest \(4,096 tokens\)\n +2 {2}gemma3:1b \(4,096 tokens, no tools\)\n/);
    expect(stderr).not.toMatch(/nomic|API key/);
    expect(config).toEqual({ provider: { type: "openai", baseUrl: server.origin, model: "llama3.2:latest" } });
    expect(stdout).toContain("The model works: llama3.2:latest answered at");
  });

  test("LM Studio, vLLM and llama.cpp ask for no more than they need", async () => {
    const studio = await startLmStudio({ script: obeys });
    const first = await setup(["lm studio", studio.url, "", "", "yes"]);
    expect(first).toMatchObject({
      config: { provider: { model: "qwen2.5-7b-instruct" } },
      stdout: expect.stringContaining("works"),
    });
    const vllm = await startVllm({ script: obeys, autoToolChoice: true, key: KEY });
    const second = await setup(["vllm", vllm.origin, KEY, "", "", "yes"]);
    expect(second).toMatchObject({
      config: { provider: { model: "Qwen/Qwen2.5-7B-Instruct" } },
      stdout: expect.stringContaining("works"),
    });
    const llama = await startLlamaCpp({ script: obeys, model: "m.gguf" });
    const third = await setup(["llama.cpp", llama.origin, "", "", "", "yes"]);
    expect(third).toMatchObject({ config: { provider: { model: "m.gguf" } }, stdout: expect.stringContaining("works") });
  });

  test("an address in place of a provider's name, without a scheme, and a name that is not in the list", async () => {
    const server = await startVllm({ autoToolChoice: true });
    const { config, stdout, stderr } = await setup([server.origin.replace("http://", ""), "", "qwen", "", "yes"]);
    expect(config).toEqual({ provider: { type: "openai", baseUrl: server.origin, model: "qwen" } });
    expect(stderr).toContain(
      '"qwen" is not in its list, and is asked for all the same. Nearest there: Qwen/Qwen2.5-7B-Instruct.',
    );
    expect(stdout).toMatch(/does not have the model.*\n.*There are: Qwen\/Qwen2\.5-7B-Instruct/);
  });
});
