import { readFileSync } from "node:fs";
import { z } from "zod";
import { writeFileAtomic } from "../lib/atomic.ts";
import { codeOf, messageOf, usageError } from "../lib/errors.ts";
import { fileError } from "../lib/file-errors.ts";
import { LOG_LEVELS } from "../lib/log.ts";
import { nearest } from "../lib/nearest.ts";
import { ruleOf, shortName, someOf } from "../lib/validation.ts";
import { McpServers } from "./mcp-config.ts";
import { DEFAULT_MODE } from "./modes.ts";
import { NewsConfig } from "./news-config.ts";
import { RetentionConfig } from "./retention-config.ts";
import { ApprovalMode, ApprovalRules, Budgets, Mode, Price, SandboxHeight } from "./safety-config.ts";

export { nearest };

/** A duration, at most the longest that a timer can wait. */
const Milliseconds = z.number().int().positive().max(2_147_483_647);

/** The user's own facts about a model, where the provider says nothing or is wrong. */
export const ModelConfig = z.strictObject({
  id: z.string().min(1).describe("the model's name, as the provider spells it"),
  contextWindow: z
    .number()
    .int()
    .min(1_024)
    .optional()
    .describe("tokens of prompt and answer together; counts before what the provider says"),
  maxOutputTokens: z.number().int().min(1).optional().describe("the longest answer, in tokens"),
  reasoning: z.boolean().optional().describe("whether it takes the parameters of a reasoning model"),
  vision: z.boolean().optional().describe("whether it understands pictures"),
  tools: z.boolean().optional().describe("whether it can use tools; `false` lets you chat with a model that cannot"),
});
export type ModelConfig = z.infer<typeof ModelConfig>;

export const ProviderConfig = z.strictObject({
  type: z
    .enum(["openai", "azure", "anthropic"])
    .default("openai")
    .describe("the kind of API; an Azure address is recognised without it"),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .describe("its address, with or without `/v1`, or the full path to `/chat/completions`, `/responses` or `/messages`"),
  apiKey: z.string().min(1).optional().describe("its key"),
  apiKeyEnv: z.string().min(1).optional().describe("the name of the variable that holds the key, to keep it out of the file"),
  bearerTokenEnv: z
    .string()
    .min(1)
    .optional()
    .describe("the name of a variable whose value is sent as `Authorization: Bearer …`, for Entra or a gateway"),
  wireApi: z
    .enum(["completions", "responses"])
    .default("completions")
    .describe("the API to speak; some of OpenAI's models answer only on `responses`"),
  model: z
    .string()
    .min(1)
    .optional()
    .describe("the model to ask, or the Azure deployment; without it, the nearest to `defaultModel`"),
  models: z.array(ModelConfig).default([]).describe("what you know about its models"),
  headers: z
    .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), z.string())
    .default({})
    .describe("headers sent with every request to the provider; they win over IO's own"),
  apiVersion: z
    .string()
    .min(1)
    .optional()
    .describe("Azure's `api-version`, for an endpoint that does not serve the routes without one"),
  proxy: z
    .url({ protocol: /^(?:https?|socks5h?)$/ })
    .optional()
    .describe("a proxy for this provider, whatever the environment says"),
});
export type ProviderConfig = z.infer<typeof ProviderConfig>;

const Port = z.number().int().min(0).max(65_535);

/** The server for workers on other hosts. Without it, all work runs here. */
export const ClusterConfig = z.strictObject({
  enabled: z.boolean().default(true).describe("what `io cluster start` and `stop` switch"),
  url: z
    .string()
    .regex(
      /^(?:nats|tls):\/\/[^\s,]+(?:,(?:nats|tls):\/\/[^\s,]+)*$/,
      "must be a nats:// or tls:// address, or several with commas",
    )
    .optional()
    .describe("your own server, or several of one cluster with commas; without it IO runs one"),
  ca: z.string().min(1).optional().describe("the CA of your own server, as a PEM file; without it the system's CAs count"),
  nkeyFile: z.string().min(1).optional().describe("a file with the seed of the daemon's nkey on your own server"),
  inviteNkeyFile: z
    .string()
    .min(1)
    .optional()
    .describe("a file with the seed of a key that may ask to join, on your own server; without it each invitation has its own"),
  server: z.string().min(1).optional().describe("the program `nats-server`, if it is not in PATH"),
  listen: z
    .string()
    .min(1)
    .optional()
    .describe("the address that IO's own server listens at; without it the one that `host` names, or loopback"),
  host: z
    .string()
    .regex(/^[A-Za-z0-9.:-]{1,253}$/, "must be a host name or an address")
    .optional()
    .describe("the name or address by which workers reach it; naming one opens the server to that network"),
  port: Port.min(1).optional().describe("its port; without it 4222, or a free one, which is then kept"),
  pools: z
    .record(z.string().startsWith("/"), z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be a label of a worker"))
    .default({})
    .describe("the label that workers must have for a project, by its folder; without it any worker does"),
  leaseMs: z
    .number()
    .int()
    .min(1_000)
    .max(3_600_000)
    .default(60_000)
    .describe("how long a worker may be silent before another takes its work over"),
});
export type ClusterConfig = z.infer<typeof ClusterConfig>;

const VariableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, "must be the name of a variable");

/** GitHub, for pull requests and issues. */
export const ForgeConfig = z.strictObject({
  webhookSecret: z
    .string()
    .min(16)
    .max(500)
    .optional()
    .describe("what a webhook of a watched repository signs with, to `/hooks/forge`; without it none is taken"),
});

export const GitHubConfig = z.strictObject({
  apiUrl: z
    .url({ protocol: /^https?$/ })
    .default("https://api.github.com")
    .describe("the address of the API; for an Enterprise server with `/api/v3`"),
  tokenEnv: VariableName.optional().describe(
    "the variable that holds the token; without it `GH_TOKEN`, `GITHUB_TOKEN` or the login of `gh`",
  ),
  pollMs: z
    .number()
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(30_000)
    .describe("how often a watched repository is looked at; on Gitea and Forgejo too"),
});

/** A Gitea or Forgejo server. */
export const GiteaConfig = z.strictObject({
  apiUrl: z.url({ protocol: /^https?$/ }).describe("the address of the server, with or without `/api/v1`"),
  tokenEnv: VariableName.optional().describe("the variable that holds the token; without it `GITEA_TOKEN` or `FORGEJO_TOKEN`"),
});

/** Requested when no model was named; another may be substituted. */
export const DEFAULT_MODEL = "claude-sonnet-4.6";

/** The schema of `config.json`. Every key is optional; an unknown key is an error. */
export const Config = z.strictObject({
  defaultModel: z.string().min(1).default(DEFAULT_MODEL).describe("the model IO itself answers with"),
  modelTiers: z
    .strictObject({
      high: z
        .array(z.string().min(1))
        .default(["claude-opus-4.7", "claude-opus-4.6"])
        .describe("models for hard work; the first available one serves"),
      medium: z
        .array(z.string().min(1))
        .default(["claude-sonnet-4.6", "gpt-5.5", "claude-opus-4.5"])
        .describe("models for usual work"),
      low: z.array(z.string().min(1)).default(["claude-haiku-4.5", "gpt-5.4-mini"]).describe("models for easy work"),
    })
    .prefault({})
    .describe("the models of each tier; the default model serves if none of a list is available"),
  modelByDifficulty: z
    .boolean()
    .default(false)
    .describe("lets IO answer hard messages with the `high` tier and easy ones with the `low` tier"),
  provider: ProviderConfig.optional().describe("your own model provider"),
  githubToken: z
    .string()
    .min(1)
    .optional()
    .describe("a token for GitHub Copilot, if no variable holds one; `io setup` writes it"),
  host: z
    .string()
    .min(1)
    .default("127.0.0.1")
    .describe("the address the API listens on; one that is not loopback needs `allowRemote`"),
  port: Port.default(3170).describe("its port; 0 takes any free one"),
  allowRemote: z.boolean().default(false).describe("lets `host` be reachable from other machines; the token is still needed"),
  allowedHosts: z
    .array(z.string().min(1))
    .default([])
    .describe("names that a request's `Host` may have besides the bound host and loopback names"),
  openaiOrigins: z
    .array(z.string().regex(/^https?:\/\/[^/\s]+$/, "an origin such as https://chat.example.com"))
    .default([])
    .describe("browser origins that may use `/v1`, the API for OpenAI clients; never `/api`"),
  telegramEnabled: z.boolean().default(false).describe("whether IO is a Telegram bot too"),
  telegramBotToken: z.string().min(1).optional().describe("the token from @BotFather"),
  authorizedUserId: z
    .number()
    .int()
    .positive()
    .optional()
    .describe("the Telegram id of the one person the bot serves; without it, use `io telegram pair`"),
  telegramApiRoot: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("your own Bot API server, in place of Telegram's"),
  transcribeCommand: z
    .union([z.string().trim().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe(
      "a program that prints what is said in a voice message, as a line or a list of words; `{file}` stands for the file",
    ),
  selfEditEnabled: z.boolean().default(false).describe("whether IO's tools may change IO's own code"),
  logLevel: z.enum(LOG_LEVELS).default("info").describe("the least important lines to log"),
  turnSilenceMs: Milliseconds.default(180_000).describe("ends a turn that is silent for this long"),
  turnCapMs: Milliseconds.default(600_000).describe("the longest a turn may take"),
  taskSilenceMs: Milliseconds.default(600_000).describe("ends a task that is silent for this long"),
  taskCapMs: Milliseconds.default(3_600_000).describe("the longest a task may take"),
  maxLiveSessions: z
    .number()
    .int()
    .min(1)
    .max(500)
    .default(40)
    .describe("sessions held in memory; others are closed and resumed when needed"),
  runtimeMaxMb: z
    .number()
    .int()
    .min(100)
    .default(600)
    .describe("replaces the runtime between turns when it uses more memory than this"),
  webFetchAllow: z
    .array(z.string().min(1))
    .default([])
    .describe("private hosts or networks that `web_fetch` may reach, such as an intranet"),
  skillsRegistry: z
    .url({ protocol: /^https?$/ })
    .default("https://skills.sh")
    .describe("where IO searches for skills"),
  updateRegistry: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("where `check_update` and `io update` look for newer versions; npm's own registry if not set"),
  retention: RetentionConfig.prefault({}).describe("how long IO keeps what adds up; unfinished work always stays"),
  mode: Mode.default(DEFAULT_MODE).describe("how much IO may do unasked; `IO_MODE` stands above it"),
  sandbox: SandboxHeight.optional().describe(
    "the sandbox of commands, in place of the mode's: `secrets` hides IO's own secrets and code, `project` also lets them write in the project alone, `workspace` shows them nothing else",
  ),
  sandboxRead: z.array(z.string().min(1)).default([]).describe("folders that commands may also read with `workspace`"),
  sandboxNetwork: z.boolean().default(true).describe("whether commands have the network with `workspace`"),
  acpTerminal: z
    .boolean()
    .default(false)
    .describe(
      "whether shell commands of a conversation that an editor has open run in the editor's own terminal, which no sandbox holds",
    ),
  approvals: ApprovalMode.optional().describe(
    "when to ask a person, in place of what the mode says: never, when a call wants out of the sandbox (`wall`), or before every effect",
  ),
  approvalExpiresMs: Milliseconds.default(1_800_000).describe(
    "how long a question waits before it counts as denied; one about a model's call at most 29.5 minutes",
  ),
  approvalRules: ApprovalRules.default([]).describe("what to do with calls that match; the first rule that matches counts"),
  budgets: Budgets.prefault({}).describe("how much work may use before a person is asked"),
  prices: z.record(z.string().min(1), Price).default({}).describe("what a million tokens of each model cost"),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, "must be three capitals, such as USD or EUR")
    .default("USD")
    .describe("the currency of `prices` and of limits on money, as three letters"),
  news: NewsConfig.prefault({}).describe("when IO may disturb you"),
  forge: ForgeConfig.prefault({}).describe("what all forges have in common"),
  github: GitHubConfig.prefault({}).describe("where GitHub is, for pull requests"),
  gitea: GiteaConfig.optional().describe("a Gitea or Forgejo server, for pull requests"),
  cluster: ClusterConfig.optional().describe("workers on other hosts; without it, all work is done here"),
  mcpServers: McpServers.default({}).describe("your MCP servers by name; their tools are offered as `mcp__<server>__<tool>`"),
  ollamaUrl: z
    .url({ protocol: /^https?$/ })
    .default("http://127.0.0.1:11434")
    .describe("where IO looks for an Ollama"),
  dispatch: z
    .enum(["local", "both", "workers"])
    .optional()
    .describe(
      "where work is done once there is a cluster: here, by workers where possible, or by workers alone; `both` unless set",
    ),
});
export type Config = z.infer<typeof Config>;
export type ConfigKey = keyof Config;
export type ConfigChanges = { [K in ConfigKey]?: unknown };

/** Keys that hold secrets, as dotted paths, `*` for any name; their values are never sent to a client. */
export const SECRET_KEYS = [
  ...["telegramBotToken", "githubToken", "provider.apiKey", "provider.headers", "provider.proxy"],
  ...["mcpServers.*.env", "mcpServers.*.headers", "forge.webhookSecret"],
] as const;

/** Whether a key is a secret or inside one. */
export function isSecretKey(path: readonly PropertyKey[]): boolean {
  return SECRET_KEYS.some((secret) => {
    const parts = secret.split(".");
    return parts.length <= path.length && parts.every((part, index) => part === "*" || part === path[index]);
  });
}

/** Whether a key contains a secret. */
const holdsSecret = (path: readonly PropertyKey[]): boolean =>
  SECRET_KEYS.some((secret) => {
    const parts = secret.split(".");
    return path.length < parts.length && path.every((part, index) => parts[index] === "*" || parts[index] === part);
  });

/** Reads the config file, or the defaults if there is none. Never changes an invalid file. */
export function loadConfig(path: string): Config {
  return parseConfig(readRaw(path), path);
}

/** Writes the given keys, keeping everything else in the file. `undefined` removes a key. */
export function updateConfig(path: string, changes: ConfigChanges): Config {
  const merged = mergedWith(path, changes);
  const config = parseConfig(merged, path);
  writeFileAtomic(path, `${JSON.stringify(merged, null, 2)}\n`, 0o600);
  return config;
}

/** The config with these keys changed; nothing is written. */
export const configWith = (path: string, changes: ConfigChanges): Config => parseConfig(mergedWith(path, changes), path);

function mergedWith(path: string, changes: ConfigChanges): Record<string, unknown> {
  return Object.fromEntries(Object.entries({ ...readRaw(path), ...changes }).filter(([, value]) => value !== undefined));
}

/** The raw content of the file, without validation and defaults. */
export const rawConfig = (path: string): Record<string, unknown> => readRaw(path);

function readRaw(path: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    // If the folder itself cannot exist, the code that creates it reports that.
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
  const { shown, more } = someOf(result.error.issues);
  const lines = [...shown.flatMap((issue) => explain(issue, raw)), ...(more ? [more] : [])];
  throw usageError(`${path}:\n${lines.map((line) => `  ${line}`).join("\n")}`);
}

function explain(issue: z.core.$ZodIssue, raw: unknown): string[] {
  if (issue.code === "unrecognized_keys") {
    const known = issue.path.length === 0 ? Object.keys(Config.shape) : [];
    const { shown, more } = someOf(issue.keys);
    const lines = shown.map((key) => {
      const name = shortName([...issue.path, key].join("."));
      const near = nearest(key, known);
      return `${name}: no such key.${near ? ` Did you mean "${near}"?` : ""}${known.length > 0 && !near ? ` Allowed: ${known.join(", ")}.` : ""}`;
    });
    return more ? [...lines, more] : lines;
  }
  const key = issue.path.join(".");
  const found = issue.path.reduce<unknown>((value, part) => (value as Record<PropertyKey, unknown> | undefined)?.[part], raw);
  if (found === undefined) return [`${key}: ${ruleOf(issue)}.`];
  const isHidden = isSecretKey(issue.path) || (typeof found === "object" && holdsSecret(issue.path));
  const shown = isHidden ? "(hidden)" : clipped(JSON.stringify(found));
  return [`${key}: ${shown} is not allowed: it ${ruleOf(issue)}.`];
}

function clipped(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
