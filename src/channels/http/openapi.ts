import type { OpenAPIHono } from "@hono/zod-openapi";
import { configSchema, secretSchemas } from "./config-file.ts";

type Json = Record<string, unknown>;
interface Operation extends Json {
  responses: Record<string, { content?: Record<string, { schema: Json }> }>;
  requestBody?: { content: Record<string, { schema: Json }> };
}

const REFUSED = {
  description: "The request was not served",
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};
/** Routes that need no token. */
const OPEN_PATHS = ["/api/health", "/api/login"];
/** Operation names that the rules in `nameOf` would not produce. */
const NAMES: Record<string, string> = {
  "post /api/messages": "sendMessage",
  "post /api/approvals/{id}": "decideApproval",
  "post /api/pulls": "requestPull",
  "post /api/skills": "installSkills",
  "post /api/watches": "addWatch",
  "post /api/squads/{slug}/decisions": "logDecision",
  "get /api/events": "followEvents",
  "post /api/runs/validate": "validatePipeline",
  "post /api/wiki/restore": "restoreWikiPage",
  "post /api/doctor/mend": "mendFinding",
  "post /api/usage": "recordUsage",
  "post /api/workers/invite": "inviteWorker",
  "get /api/mcp": "listMcpServers",
  "post /api/mcp": "addMcpServer",
  "get /api/mcp/{name}": "getMcpServer",
  "delete /api/mcp/{name}": "removeMcpServer",
  "post /api/mcp/{name}/enable": "enableMcpServer",
  "post /api/mcp/{name}/disable": "disableMcpServer",
  "post /api/mcp/{name}/test": "testMcpServer",
  "post /api/mcp/{name}/login": "loginMcpServer",
  "post /api/mcp/{name}/logout": "logoutMcpServer",
  "put /api/conversations/{name}/servers": "lendMcpServers",
  "delete /api/conversations/{name}/servers": "takeBackMcpServers",
  "get /api/approvals/rules": "listApprovalRules",
  "delete /api/approvals/rules/{id}": "deleteApprovalRule",
  "get /api/skills/search": "searchSkills",
  "get /api/wiki/search": "searchWiki",
  "get /api/conversations/search": "searchConversations",
  "post /api/conversations": "openConversation",
  "get /api/background": "listBackgroundCommands",
  "get /api/background/{id}": "getBackgroundCommand",
  "post /api/background/{id}/stop": "stopBackgroundCommand",
  "post /api/conversations/{name}/seen": "markConversationSeen",
};

/** Descriptions of the routes, by the first word of their paths. */
const TAGS: Record<string, string> = {
  analyze: "What a project is made of.",
  approvals: "Questions that wait for a person, and rules that answer them.",
  background: "Commands that models left running.",
  backup: "What a backup asks of the daemon.",
  budgets: "Limits on tokens, calls, money and time.",
  changes: "What messages and tasks changed in files.",
  files: "Files that come with messages.",
  schedules: "What is done at set times",
  rules: "What the user ruled",
  digest: "What happened while nobody looked",
  clients: "Other programs that can use IO.",
  cluster: "The NATS server that workers connect to.",
  config: "The settings in config.json.",
  conversations: "Conversations and what was said in them.",
  doctor: "Checks of everything that IO needs.",
  events: "The event stream.",
  health: "Whether the daemon serves.",
  login: "Browser sessions.",
  mcp: "The user's MCP servers.",
  messages: "Messages to IO and their answers.",
  models: "The models that can be used.",
  pulls: "Pull requests of runs and tasks.",
  plans: "Issues that are clarified before they are run.",
  runs: "Runs of the pipeline.",
  skills: "Installed skills and the registry.",
  squads: "Teams of agents, their decisions and their tasks.",
  status: "What the daemon is doing.",
  stay: "Keeps a daemon that would end by itself.",
  stop: "Ends all work.",
  tasks: "Background work of squads.",
  telegram: "The Telegram channel.",
  tokens: "Tokens for other programs.",
  tickets: "Links that sign a browser in.",
  usage: "What model calls used and cost.",
  watches: "Repositories whose issues, reviews and failed checks set IO to work.",
  wiki: "Long-term memory: pages, sources and their history.",
  workers: "Other machines that do work.",
};

/** Builds openapi.json: what the routes declare, and what applies to all of them. */
export function describeApi(app: OpenAPIHono, version: string): Json {
  const declared = app.getOpenAPI31Document({ openapi: "3.1.0", info: { title: "IO", version } });
  const entries = Object.entries(declared.paths ?? {}).map(([path, operations]) => {
    const described = Object.entries(operations as Record<string, Operation>).map(([method, operation]) => [
      method,
      describe(method, path, operation),
    ]);
    return [path, Object.fromEntries(described) as Record<string, Operation>] as const;
  });
  const paths = Object.fromEntries(entries);
  typeConfig(paths["/api/config"]);
  return {
    ...declared,
    info: { title: "IO", version, license: { name: "MIT", identifier: "MIT" } },
    servers: [{ url: "/" }],
    security: [{ token: [] }, { cookie: [], key: [] }],
    tags: [...new Set(Object.keys(paths).map(tagOf))].map((name) => ({ name, description: TAGS[name] ?? "" })),
    paths,
    components: {
      ...declared.components,
      schemas: { ...declared.components?.schemas, Config: shownConfig() },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "The text of IO_HOME/token." },
        cookie: { type: "apiKey", in: "cookie", name: "io_session_<port>", description: "What POST /api/login gives a browser." },
        key: { type: "apiKey", in: "header", name: "IO-Key", description: "The key to that cookie, from the same answer." },
      },
    },
  };
}

function describe(method: string, path: string, operation: Operation): Operation {
  const { default: _, ...responses } = operation.responses;
  return {
    operationId: nameOf(method, path, operation),
    tags: [tagOf(path)],
    ...(OPEN_PATHS.includes(path) && { security: [] }),
    ...operation,
    responses: { ...responses, "4XX": REFUSED, "5XX": REFUSED },
  };
}

const tagOf = (path: string): string => path.split("/")[2] ?? "";

/** `GET /api/runs` is `listRuns`, `POST /api/runs/{id}/resume` is `resumeRun`, `DELETE /api/squads/{slug}` is `deleteSquad`. */
function nameOf(method: string, path: string, { responses }: Operation): string {
  const known = NAMES[`${method} ${path}`];
  if (known !== undefined) return known;
  const parts = path.split("/").slice(2);
  const isOne = (index: number) => parts[index + 1]?.startsWith("{") === true;
  const words = parts.flatMap((part, index) => (part.startsWith("{") ? [] : [isOne(index) ? singular(part) : part]));
  const whole = (all: string[]) => all.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
  const last = words.at(-1) ?? "";
  const isList = Object.values(responses).some(({ content }) => hasItems(content?.["application/json"]?.schema));
  if (method === "get") return `${isList ? "list" : "get"}${whole(words)}`;
  if (method === "patch") return `update${whole(words)}`;
  if (method === "put") return `${parts.at(-1)?.startsWith("{") ? "write" : "set"}${whole(words)}`;
  if (method === "delete") return `delete${whole(words)}`;
  if (last.endsWith("s")) return `create${whole([...words.slice(0, -1), singular(last)])}`;
  return `${last}${whole(words.slice(0, -1))}`;
}

const singular = (word: string): string => word.replace(/ies$/, "y").replace(/s$/, "");
const hasItems = (schema: Json | undefined): boolean => Object.hasOwn(Object(schema?.properties), "items");

/** The configuration as the API shows it: of a secret, only whether it is set. */
function shownConfig(): Json {
  const { $schema: _, ...schema } = structuredClone(configSchema()) as Json & { properties: Record<string, Json> };
  const set = { type: "object", properties: { set: { type: "boolean" } }, required: ["set"], additionalProperties: false };
  for (const { holder, key } of secretSchemas(schema)) holder[key] = { anyOf: [set, holder[key]] };
  return schema;
}

function typeConfig(operations: Record<string, Operation> | undefined): void {
  const shown = { schema: { $ref: "#/components/schemas/Config" } };
  for (const operation of Object.values(operations ?? {})) {
    operation.responses = {
      ...operation.responses,
      200: { ...operation.responses["200"], content: { "application/json": shown } },
    };
  }
  const patch = operations?.patch?.requestBody;
  const properties = Object.keys(shownConfig().properties as Json).map((name) => [
    name,
    { anyOf: [{ $ref: `#/components/schemas/Config/properties/${name}` }, { type: "null" }] },
  ]);
  if (patch) patch.content = { "application/json": { schema: { type: "object", properties: Object.fromEntries(properties) } } };
}
