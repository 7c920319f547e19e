/** What OpenAI accepts for a model. */
export interface ModelRules {
  /** The dated model name in its answers. */
  snapshot: string;
  window: number;
  /** The most tokens in a request, if fewer than the window. */
  maxInput?: number;
  maxOutput: number;
  /** The efforts it accepts; empty for a model that does not reason. */
  efforts: readonly string[];
  /** Its default effort. */
  effort?: string;
  /** How a temperature other than 1 is refused: not at all, as a value, as a parameter, or unless the effort is "none". */
  temperature: "any" | "value" | "parameter" | "without-effort";
  tools: boolean;
  /** Whether completions refuse function tools with a given effort, or also with the default one. */
  toolsWithEffort?: "refused" | "refused-by-default";
  vision: boolean;
  systemMessages: boolean;
  parallelCalls: boolean;
  responsesOnly?: boolean;
}

const plain = {
  efforts: [],
  temperature: "any",
  tools: true,
  vision: true,
  systemMessages: true,
  parallelCalls: true,
} as const satisfies Partial<ModelRules>;
const reasoning = {
  ...plain,
  window: 200_000,
  maxOutput: 100_000,
  efforts: ["low", "medium", "high"],
  effort: "medium",
  temperature: "value",
} as const satisfies Partial<ModelRules>;
const gpt5 = { ...reasoning, window: 400_000, maxInput: 272_000, maxOutput: 128_000 } as const satisfies Partial<ModelRules>;
const minimal = ["minimal", "low", "medium", "high"];
const none = ["none", "low", "medium", "high"];
const xhigh = [...none, "xhigh"];

/** OpenAI's models, by the name that people request. */
export const OPENAI_MODELS: Record<string, ModelRules> = {
  "gpt-3.5-turbo": { ...plain, snapshot: "gpt-3.5-turbo-0125", window: 16_385, maxOutput: 4_096, vision: false },
  "gpt-4o": { ...plain, snapshot: "gpt-4o-2024-08-06", window: 128_000, maxOutput: 16_384 },
  "gpt-4o-mini": { ...plain, snapshot: "gpt-4o-mini-2024-07-18", window: 128_000, maxOutput: 16_384 },
  "gpt-4.1": { ...plain, snapshot: "gpt-4.1-2025-04-14", window: 1_047_576, maxOutput: 32_768 },
  "gpt-4.1-mini": { ...plain, snapshot: "gpt-4.1-mini-2025-04-14", window: 1_047_576, maxOutput: 32_768 },
  "gpt-5-chat-latest": { ...plain, snapshot: "gpt-5-chat-latest", window: 128_000, maxOutput: 16_384, tools: false },
  "o1-mini": {
    ...reasoning,
    ...{ snapshot: "o1-mini-2024-09-12", window: 128_000, maxOutput: 65_536, efforts: [] },
    ...{ tools: false, vision: false, systemMessages: false, parallelCalls: false },
  },
  o1: { ...reasoning, snapshot: "o1-2024-12-17", temperature: "parameter", parallelCalls: false },
  "o3-mini": {
    ...reasoning,
    ...{ snapshot: "o3-mini-2025-01-31", temperature: "parameter", vision: false, parallelCalls: false },
  },
  o3: { ...reasoning, snapshot: "o3-2025-04-16", parallelCalls: false },
  "o4-mini": { ...reasoning, snapshot: "o4-mini-2025-04-16", parallelCalls: false },
  "o3-pro": { ...reasoning, snapshot: "o3-pro-2025-06-10", responsesOnly: true },
  "gpt-5": { ...gpt5, snapshot: "gpt-5-2025-08-07", efforts: minimal },
  "gpt-5-mini": { ...gpt5, snapshot: "gpt-5-mini-2025-08-07", efforts: minimal },
  "gpt-5-nano": { ...gpt5, snapshot: "gpt-5-nano-2025-08-07", efforts: minimal },
  "gpt-5-codex": { ...gpt5, snapshot: "gpt-5-codex", responsesOnly: true },
  "gpt-5.1": { ...gpt5, snapshot: "gpt-5.1-2025-11-13", efforts: none, effort: "none", temperature: "without-effort" },
  "gpt-5.1-codex": { ...gpt5, snapshot: "gpt-5.1-codex", responsesOnly: true },
  "gpt-5.2": { ...gpt5, snapshot: "gpt-5.2-2025-12-11", efforts: xhigh, effort: "none", temperature: "without-effort" },
  "gpt-5.4": {
    ...gpt5,
    ...{ snapshot: "gpt-5.4-2026-03-05", efforts: xhigh, effort: "none" },
    ...{ temperature: "without-effort", toolsWithEffort: "refused" },
  },
  "gpt-5.6-terra": {
    ...gpt5,
    ...{ snapshot: "gpt-5.6-terra", efforts: xhigh, effort: "medium" },
    ...{ temperature: "without-effort", toolsWithEffort: "refused-by-default" },
  },
};

/** The rules for a model, which may be requested by its name or its snapshot's name. */
export function rulesFor(models: Record<string, ModelRules>, name: string): ModelRules | undefined {
  return models[name] ?? Object.values(models).find(({ snapshot }) => snapshot === name);
}
