import { readFileSync } from "node:fs";
import { z } from "zod";
import { writeFileAtomic } from "./atomic.ts";
import { codeOf, messageOf, usageError } from "./errors.ts";
import { fileError } from "./file-errors.ts";
import { LOG_LEVELS } from "./log.ts";
import { nearest } from "./nearest.ts";
import { ApprovalMode, ApprovalRules, Budgets, Price, SandboxHeight } from "./safety-config.ts";
import { ruleOf } from "./validation.ts";

export { nearest };

/** No longer than a timer can wait. */
const Milliseconds = z.number().int().positive().max(2_147_483_647);

/** What a person says of a model, where the provider does not say it or says it wrongly. */
export const ModelConfig = z.strictObject({
  id: z.string().min(1),
  /** In tokens, prompt and answer together. */
  contextWindow: z.number().int().min(1_024).optional(),
  maxOutputTokens: z.number().int().min(1).optional(),
  /** Whether it takes the parameters of a reasoning model. */
  reasoning: z.boolean().optional(),
  vision: z.boolean().optional(),
  tools: z.boolean().optional(),
});
export type ModelConfig = z.infer<typeof ModelConfig>;

export const ProviderConfig = z.strictObject({
  type: z.enum(["openai", "azure", "anthropic"]).default("openai"),
  baseUrl: z.url({ protocol: /^https?$/ }),
  apiKey: z.string().min(1).optional(),
  apiKeyEnv: z.string().min(1).optional(),
  bearerTokenEnv: z.string().min(1).optional(),
  wireApi: z.enum(["completions", "responses"]).default("completions"),
  model: z.string().min(1).optional(),
  models: z.array(ModelConfig).default([]),
  /** Sent with every request to the provider. */
  headers: z.record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string()).default({}),
  /** Of an Azure endpoint that does not serve the version-less routes. */
  apiVersion: z.string().min(1).optional(),
  /** A proxy for this provider, whatever the environment says and wherever the provider is. */
  proxy: z.url({ protocol: /^(?:https?|socks5h?)$/ }).optional(),
});
export type ProviderConfig = z.infer<typeof ProviderConfig>;

/** 0 is for ever. */
const Days = z.number().int().min(0).max(36_500);
/** Of the newest rows; 0 is all. */
const Rows = z.number().int().min(0);

/** How long what adds up is kept, and how much of it. What is unfinished or owed stays, whatever is said here. */
export const RetentionConfig = z.strictObject({
  messagesDays: Days.default(365),
  messages: Rows.default(200_000),
  eventsDays: Days.default(30),
  events: Rows.default(20_000),
  toolCallsDays: Days.default(90),
  toolCalls: Rows.default(200_000),
  usageDays: Days.default(400),
  activityDays: Days.default(90),
  sessionsDays: Days.default(30),
});

const Port = z.number().int().min(0).max(65_535);

/** Workers on other hosts, and the server through which they are reached. Without this, all work is done here. */
export const ClusterConfig = z.strictObject({
  /** What `io cluster start` and `stop` switch. */
  enabled: z.boolean().default(true),
  /** A server of one's own, or several of one cluster with commas between them; without it IO runs one. */
  url: z
    .string()
    .regex(
      /^(?:nats|tls):\/\/[^\s,]+(?:,(?:nats|tls):\/\/[^\s,]+)*$/,
      "must be a nats:// or tls:// address, or several with commas",
    )
    .optional(),
  /** The authority, as a PEM file, that the server of one's own is signed by; without it the system's hold. */
  ca: z.string().min(1).optional(),
  /** A file with the seed of the daemon's nkey on a server of one's own. */
  nkeyFile: z.string().min(1).optional(),
  /** A file with the seed of a key that may ask to be let in, on a server of one's own; without it each invitation has its own. */
  inviteNkeyFile: z.string().min(1).optional(),
  /** The program `nats-server`, where it is not in PATH. */
  server: z.string().min(1).optional(),
  /** The address that the server of IO listens at. */
  listen: z.string().min(1).default("0.0.0.0"),
  /** The name or address by which workers reach it; without it the first address of this host. */
  host: z
    .string()
    .regex(/^[A-Za-z0-9.:-]{1,253}$/, "must be a host name or an address")
    .optional(),
  /** Without it 4222, or any that is free where that one is taken; it is kept. */
  port: Port.min(1).optional(),
  /** The label that workers must have for a project, by its folder; without it any does. */
  pools: z
    .record(z.string().startsWith("/"), z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be a label of a worker"))
    .default({}),
  /** How long a worker may be silent before another takes its work over. */
  leaseMs: z.number().int().min(1_000).max(3_600_000).default(60_000),
});
export type ClusterConfig = z.infer<typeof ClusterConfig>;

/** Asked for when nobody named a model; another may stand in for it. */
export const DEFAULT_MODEL = "claude-sonnet-4.6";

/** Everything `config.json` may say. Every key is optional; a key that is not here is an error. */
export const Config = z.strictObject({
  defaultModel: z.string().min(1).default(DEFAULT_MODEL),
  modelTiers: z
    .strictObject({
      high: z.array(z.string().min(1)).default(["claude-opus-4.7", "claude-opus-4.6"]),
      medium: z.array(z.string().min(1)).default(["claude-sonnet-4.6", "gpt-5.5", "claude-opus-4.5"]),
      low: z.array(z.string().min(1)).default(["claude-haiku-4.5", "gpt-5.4-mini"]),
    })
    .prefault({}),
  provider: ProviderConfig.optional(),
  /** For GitHub Copilot, where no variable holds a token; `io setup` writes it. */
  githubToken: z.string().min(1).optional(),
  host: z.string().min(1).default("127.0.0.1"),
  port: Port.default(3170),
  allowRemote: z.boolean().default(false),
  allowedHosts: z.array(z.string().min(1)).default([]),
  telegramEnabled: z.boolean().default(false),
  telegramBotToken: z.string().min(1).optional(),
  authorizedUserId: z.number().int().positive().optional(),
  telegramApiRoot: z.url({ protocol: /^https?$/ }).optional(),
  /** A program that is given a sound file and prints what is said in it, as a line or as a list of its words. */
  transcribeCommand: z.union([z.string().trim().min(1), z.array(z.string().min(1)).min(1)]).optional(),
  selfEditEnabled: z.boolean().default(false),
  logLevel: z.enum(LOG_LEVELS).default("info"),
  turnSilenceMs: Milliseconds.default(180_000),
  turnCapMs: Milliseconds.default(600_000),
  taskSilenceMs: Milliseconds.default(600_000),
  taskCapMs: Milliseconds.default(3_600_000),
  maxLiveSessions: z.number().int().min(1).max(500).default(40),
  runtimeMaxMb: z.number().int().min(100).default(600),
  webFetchAllow: z.array(z.string().min(1)).default([]),
  skillsRegistry: z.url({ protocol: /^https?$/ }).default("https://skills.sh"),
  updateRegistry: z.url({ protocol: /^https?$/ }).optional(),
  retention: RetentionConfig.prefault({}),
  sandbox: SandboxHeight.default("secrets"),
  /** Folders outside the project that a command may read in the height `workspace`. */
  sandboxRead: z.array(z.string().min(1)).default([]),
  /** Whether a command has the network in the height `workspace`. */
  sandboxNetwork: z.boolean().default(true),
  approvals: ApprovalMode.default("none"),
  approvalExpiresMs: Milliseconds.default(1_800_000),
  approvalRules: ApprovalRules.default([]),
  budgets: Budgets.prefault({}),
  prices: z.record(z.string().min(1), Price).default({}),
  cluster: ClusterConfig.optional(),
  ollamaUrl: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:11434"),
  /** Where work is done once there is a cluster: here, by workers alone, or by workers where it can be. */
  dispatch: z.enum(["local", "both", "workers"]).optional(),
});
export type Config = z.infer<typeof Config>;
export type ConfigKey = keyof Config;

/** The keys whose values are secrets, as dotted paths; they are never sent back to anybody. */
export const SECRET_KEYS = ["telegramBotToken", "githubToken", "provider.apiKey", "provider.headers", "provider.proxy"] as const;

/** Reads the config file, or the defaults if there is none. A file that is wrong is left as it is. */
export function loadConfig(path: string): Config {
  return parseConfig(readRaw(path), path);
}

/** Writes the given keys into the file, keeping what else the person wrote there. `undefined` takes a key out. */
export function updateConfig(path: string, changes: { [K in ConfigKey]?: unknown }): Config {
  const merged = Object.fromEntries(Object.entries({ ...readRaw(path), ...changes }).filter(([, value]) => value !== undefined));
  const config = parseConfig(merged, path);
  writeFileAtomic(path, `${JSON.stringify(merged, null, 2)}\n`, 0o600);
  return config;
}

/** What the file says, unchecked and without the defaults. */
export const rawConfig = (path: string): Record<string, unknown> => readRaw(path);

function readRaw(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    // Where its folder cannot even be made, whoever makes it says so.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return {};
    throw fileError(error) ?? error;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch (error) {
    throw usageError(
      `${path}: is not valid JSON: ${messageOf(error)}. It was left as it is; mend it, or move it away to start with the defaults.`,
      error,
    );
  }
  throw usageError(`${path}: must hold one JSON object, for example {"port": 3170}. It was left as it is.`);
}

export function parseConfig(raw: Record<string, unknown>, path: string): Config {
  const result = Config.safeParse(raw);
  if (result.success) return result.data;
  const lines = result.error.issues.flatMap((issue) => explain(issue, raw));
  throw usageError(`${path}:\n${lines.map((line) => `  ${line}`).join("\n")}`);
}

function explain(issue: z.core.$ZodIssue, raw: unknown): string[] {
  if (issue.code === "unrecognized_keys") {
    const known = issue.path.length === 0 ? Object.keys(Config.shape) : [];
    return issue.keys.map((key) => {
      const name = [...issue.path, key].join(".");
      const near = nearest(key, known);
      return `${name}: no such key.${near ? ` Did you mean "${near}"?` : ""}${known.length > 0 && !near ? ` Allowed: ${known.join(", ")}.` : ""}`;
    });
  }
  const key = issue.path.join(".");
  const found = issue.path.reduce<unknown>((value, part) => (value as Record<PropertyKey, unknown> | undefined)?.[part], raw);
  if (found === undefined) return [`${key}: ${ruleOf(issue)}.`];
  const shown = SECRET_KEYS.some((secret) => secret === key || key.startsWith(`${secret}.`)) ? "(hidden)" : JSON.stringify(found);
  return [`${key}: ${shown} is not allowed: it ${ruleOf(issue)}.`];
}
