import type { ProviderConfig } from "../../home/config.ts";

/** A well-known provider, with the defaults that setup offers. */
export interface Preset {
  /** The name that a person types. */
  name: string;
  title: string;
  type: ProviderConfig["type"];
  wireApi: ProviderConfig["wireApi"];
  /** Its usual address; undefined if everybody has their own. */
  address?: string;
  needsKey: boolean;
  /** The usual variables for its key, most common first. */
  variables: readonly string[];
  /** Patterns for its hosts and for its keys, if these are distinctive. */
  hosts?: RegExp;
  keys?: RegExp;
  /** One line to help people choose. */
  hint: string;
}

const OPENAI_LIKE = { type: "openai", wireApi: "completions", needsKey: false, variables: [] } as const;

export const PRESETS: readonly Preset[] = [
  {
    ...{ name: "openai", title: "OpenAI", type: "openai", wireApi: "responses", needsKey: true },
    address: "https://api.openai.com/v1",
    variables: ["OPENAI_API_KEY"],
    hosts: /(?:^|\.)openai\.com$/,
    keys: /^sk-(?:proj|svcacct|admin)-|^sk-[A-Za-z0-9]{48}$/,
    hint: "Keys are made at platform.openai.com; a ChatGPT subscription is none.",
  },
  {
    ...{ name: "azure", title: "Azure OpenAI or Foundry", type: "azure", wireApi: "completions", needsKey: true },
    variables: ["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
    hosts: /\.(?:openai|cognitiveservices|services\.ai)\.azure\.(?:com|us|cn)$/,
    hint: "The portal shows the endpoint and the target URI under the deployment; either will do.",
  },
  {
    ...{ name: "anthropic", title: "Anthropic", type: "anthropic", wireApi: "completions", needsKey: true },
    address: "https://api.anthropic.com",
    variables: ["ANTHROPIC_API_KEY"],
    hosts: /(?:^|\.)anthropic\.com$/,
    keys: /^sk-ant-/,
    hint: "Keys are made at console.anthropic.com; a Claude subscription is none.",
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "openrouter", title: "OpenRouter", needsKey: true },
    address: "https://openrouter.ai/api/v1",
    variables: ["OPENROUTER_API_KEY"],
    hosts: /(?:^|\.)openrouter\.ai$/,
    keys: /^sk-or-/,
    hint: "Models have a publisher in their names, such as openai/gpt-4o.",
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "github-models", title: "GitHub Models", needsKey: true },
    address: "https://models.github.ai/inference",
    variables: ["GITHUB_TOKEN", "GH_TOKEN"],
    hosts: /^models\.(?:github\.ai|inference\.ai\.azure\.com)$/,
    keys: /^(?:gh[pousr]_|github_pat_)/,
    hint: 'The key is a GitHub token with the permission "Models"; a request may hold far less than the model could.',
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "groq", title: "Groq", needsKey: true },
    address: "https://api.groq.com/openai/v1",
    variables: ["GROQ_API_KEY"],
    hosts: /(?:^|\.)groq\.com$/,
    keys: /^gsk_/,
    hint: "Keys are made at console.groq.com; without a paid plan few tokens a minute are allowed.",
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "ollama", title: "Ollama", address: "http://127.0.0.1:11434/v1" },
    hint: '"ollama pull" brings a model; one with tools is needed. OLLAMA_CONTEXT_LENGTH makes its window larger than 4,096.',
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "lmstudio", title: "LM Studio", address: "http://127.0.0.1:1234/v1" },
    hint: 'Its server is started in the tab "Developer", or by "lms server start".',
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "vllm", title: "vLLM", address: "http://127.0.0.1:8000/v1", variables: ["VLLM_API_KEY"] },
    hint: "For tools it is started with --enable-auto-tool-choice and --tool-call-parser.",
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "llamacpp", title: "llama.cpp", address: "http://127.0.0.1:8080/v1", variables: ["LLAMA_API_KEY"] },
    hint: "For tools llama-server is started with --jinja.",
  },
  {
    ...OPENAI_LIKE,
    ...{ name: "other", title: "Any other that speaks as OpenAI does" },
    hint: "Most such addresses end in /v1.",
  },
];

/** The preset of an address, judging by its host. */
export function presetAt(address: string): Preset | undefined {
  const { hostname } = new URL(address);
  return PRESETS.find(({ hosts }) => hosts?.test(hostname));
}

/** The preset of a key, judging by its prefix. */
export function presetOfKey(key: string): Preset | undefined {
  return PRESETS.find(({ keys }) => keys?.test(key));
}
