import type { AtTheEnd } from "../home.ts";
import type { Script } from "./act.ts";
import { completionsDialect } from "./completions-wire.ts";
import { type Ask, type Provider, type Recorded, startProvider } from "./core.ts";
import { contentText, type Json, listOf, objectOf } from "./json.ts";
import { answerChat, bodyFault, type OpenAiHouse } from "./openai.ts";
import { type ModelRules, OPENAI_MODELS } from "./openai-models.ts";
import { answerResponses } from "./openai-responses.ts";
import type { Reply } from "./reply.ts";
import { createResponsesMemory } from "./responses-memory.ts";
import { responsesDialect } from "./responses-wire.ts";
import { type Dialect, type Fault, refuse } from "./speak.ts";
import { type Counter, estimateTokens } from "./tokens.ts";

export interface AzureOptions {
  key?: string;
  /** An Entra token that is accepted as a bearer token, in addition to the key. */
  token?: string;
  script?: Script;
  /** The resource's deployments, and the model behind each. */
  deployments?: Record<string, string>;
  /** Overrides for the model behind a deployment. */
  changes?: Record<string, Partial<ModelRules>>;
  /** Prompts that the content filter rejects. */
  filter?: RegExp;
  /** If true, filter results follow the text, in a choice without a delta. */
  asyncFilter?: boolean;
  count?: Counter;
}

const SAFE = Object.fromEntries(
  ["hate", "self_harm", "sexual", "violence"].map((kind) => [kind, { filtered: false, severity: "safe" }]),
);

/** Azure OpenAI: models are requested by the name of their deployment, which no list contains. */
export function startAzure(options: AzureOptions = {}, atTheEnd?: AtTheEnd): Promise<Provider> {
  const key = options.key ?? "0123456789abcdef0123456789abcdef";
  const house = houseOf(options);
  const chat = azureChat(options.asyncFilter ?? false);
  const memory = createResponsesMemory(house.models);
  const responses = responsesDialect(memory, chat);
  return startProvider(
    {
      base: "/openai/v1",
      script: options.script,
      answer: (request, ask) => {
        const route = routeOf(request);
        if (!route) return refuse({ status: 404, code: "404", message: "Resource not found" }, chat);
        const fault = keyFault(request, key, options.token) ?? versionFault(request, route);
        if (fault) return refuse(fault, chat);
        if (route.kind === "models") return baseModels();
        return answer(request, ask, route);
      },
    },
    atTheEnd,
  );

  async function answer(request: Recorded, ask: Ask, { kind, deployment }: Route): Promise<Reply> {
    const named = deployment === undefined ? request : { ...request, body: { ...objectOf(request.body), model: deployment } };
    const unreadable = bodyFault(named);
    if (unreadable) return refuse(unreadable, chat);
    const body = objectOf(named.body);
    if (!Object.hasOwn(house.models, String(body.model))) return refuse(notDeployed, chat);
    const fault = filterFault(body, options.filter);
    if (fault) return refuse(fault, chat);
    return kind === "chat" ? answerChat(named, ask, house, chat) : answerResponses(named, ask, { ...house, memory }, responses);
  }
}

interface Route {
  kind: "chat" | "responses" | "models";
  deployment?: string;
  classic: boolean;
}

function houseOf({ deployments = { "my-gpt-4o": "gpt-4o" }, changes = {}, count = estimateTokens }: AzureOptions): OpenAiHouse {
  const models: Record<string, ModelRules> = {};
  for (const [name, model] of Object.entries(deployments)) models[name] = { ...OPENAI_MODELS[model]!, ...changes[name] };
  return { models, count };
}

const notDeployed: Fault = {
  status: 404,
  code: "DeploymentNotFound",
  message:
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
};

function azureChat(asyncFilter: boolean): Dialect {
  const filter = { prompt_filter_results: [{ prompt_index: 0, content_filter_results: SAFE }] };
  const dialect = completionsDialect({
    extra: { system_fingerprint: "fp_ee1d74bde0" },
    choice: { content_filter_results: {} },
    before: () => [{ choices: [], created: 0, id: "", model: "", object: "", ...filter }],
    error: ({ message, code = null, type, param, more }) => ({
      error: { code, message, ...(type !== undefined && { type }), ...(param !== undefined && { param }), ...more },
    }),
    busy: (kind) => {
      const wait =
        kind === "overloaded" ? "The service is temporarily unable to process your request. Please try again later." : limited;
      return { status: kind === "overloaded" ? 503 : 429, code: kind === "overloaded" ? "503" : "429", message: wait };
    },
    headers: { "x-ms-region": "East US 2", "apim-request-id": "00000000-0000-0000-0000-000000000000" },
  });
  if (!asyncFilter) return dialect;
  const offsets = { check_offset: 44, start_offset: 44, end_offset: 198 };
  const late = { index: 0, finish_reason: null, content_filter_results: SAFE, content_filter_offsets: offsets };
  return {
    ...dialect,
    events: (plan, asked) => {
      const events = dialect.events(plan, asked);
      return [
        ...events.slice(0, -1),
        { data: { id: "", object: "", created: 0, model: "", choices: [late] } },
        ...events.slice(-1),
      ];
    },
  };
}

const limited =
  "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 20 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.";

function routeOf({ method, path }: Recorded): Route | undefined {
  const [place = ""] = path.split("?");
  const verb = `${method} ${place}`;
  if (verb === "GET /openai/v1/models") return { kind: "models", classic: false };
  if (verb === "GET /openai/models") return { kind: "models", classic: true };
  if (verb === "POST /openai/v1/chat/completions") return { kind: "chat", classic: false };
  if (verb === "POST /openai/v1/responses") return { kind: "responses", classic: false };
  if (verb === "POST /openai/responses") return { kind: "responses", classic: true };
  const deployment = /^POST \/openai\/deployments\/([^/]+)\/chat\/completions$/.exec(verb)?.[1];
  return deployment === undefined ? undefined : { kind: "chat", classic: true, deployment: decodeURIComponent(deployment) };
}

function versionFault({ path }: Recorded, { classic }: Route): Fault | undefined {
  const version = new URLSearchParams(path.split("?")[1] ?? "").get("api-version");
  if (classic) return version === null ? { status: 404, code: "404", message: "Resource not found" } : undefined;
  if (version === null || ["preview", "latest", "v1"].includes(version)) return undefined;
  return { status: 400, code: "BadRequest", message: "API version not supported" };
}

function keyFault({ headers }: Recorded, key: string, token: string | undefined): Fault | undefined {
  if (headers["api-key"] === key) return undefined;
  const bearer = /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (bearer !== undefined && (bearer === key || bearer === token)) return undefined;
  const message =
    headers["api-key"] === undefined && bearer !== undefined
      ? "Unauthorized. Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have expired."
      : "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.";
  return { status: 401, code: "401", message };
}

function filterFault(body: Json, filter: RegExp | undefined): Fault | undefined {
  const said = [...listOf(body.messages), ...listOf(body.input)]
    .map((message) => contentText(objectOf(message).content))
    .join("\n");
  if (!filter?.test(said)) return undefined;
  return {
    ...{ status: 400, param: "prompt", code: "content_filter" },
    message:
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
    more: { status: 400, innererror: { code: "ResponsibleAIPolicyViolation", content_filter_result: SAFE } },
  };
}

/** The region's base models: what could be deployed, not what is. */
function baseModels(): Reply {
  const data = Object.values(OPENAI_MODELS).map(({ snapshot }) => ({
    ...{ id: snapshot, object: "model", status: "succeeded", created_at: 1_715_367_049, lifecycle_status: "generally-available" },
    capabilities: { fine_tune: false, inference: true, completion: false, chat_completion: true, embeddings: false },
  }));
  return { kind: "json", status: 200, body: { object: "list", data } };
}
