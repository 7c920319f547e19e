import { z } from "zod";
import { type Config, DEFAULT_MODEL, nearest } from "../../home/config.ts";
import { namedList, quoted } from "../../lib/quoted.ts";
import type { Serving, Tier } from "../port.ts";
import { textOf } from "../wire/exchange.ts";
import { readRefusal, WireFailure } from "../wire/failure.ts";
import type { Transport } from "../wire/transport.ts";
import type { Endpoint } from "./provider.ts";

/** The known properties of a model. */
export interface ModelFacts {
  id: string;
  name: string;
  /** In tokens, prompt and answer together. */
  window?: number;
  tools?: boolean;
  reasoning?: boolean;
  /** Whether it supports pictures. */
  vision?: boolean;
  /** False for a model without chat, such as an embedding model. */
  chats?: boolean;
}

const Entry = z.looseObject({ id: z.string().optional(), name: z.string().optional() });
const List = z.union([
  z.array(Entry),
  z.looseObject({ data: z.array(Entry) }).transform(({ data }) => data),
  z.looseObject({ models: z.array(Entry) }).transform(({ models }) => models),
]);
const LIST_MS = 2_000;

/** The models that a provider lists, or why it lists none. */
export interface Listing {
  models: ModelFacts[];
  /** The server is Ollama, which has an endpoint with more details of each model. */
  isOllama: boolean;
  failure?: WireFailure;
}

export async function readList(
  { list, origin, headers }: Endpoint,
  transport: Transport,
  withinMs: number = LIST_MS,
): Promise<Listing> {
  const read = await readJson(list, headers, transport, { withinMs });
  if (read instanceof WireFailure) return { models: [], isOllama: false, failure: read };
  const listed = List.safeParse(read);
  if (!listed.success) return { models: [], isOllama: false };
  const models = listed.data.flatMap(factsOf);
  const owners = listed.data.map(({ owned_by }) => String(owned_by)).join(" ");
  const isOllama = /\blibrary\b/.test(owners) || new URL(list).port === "11434";
  if (models.some(({ window }) => window !== undefined)) return { models, isOllama };
  return { models: await withLocalWindows(models, owners, (path) => fetchJson(origin + path, headers, transport)), isOllama };
}

/** Adds the windows from llama.cpp's and LM Studio's own endpoints. The server is recognised by the owner field of its list. */
async function withLocalWindows(
  models: ModelFacts[],
  owners: string,
  ask: (path: string) => Promise<unknown>,
): Promise<ModelFacts[]> {
  if (/llama\.?cpp/i.test(owners)) {
    const props = z.looseObject({ default_generation_settings: z.looseObject({ n_ctx: z.number() }) });
    const told = props.safeParse(await ask("/props"));
    return told.success ? models.map((each) => ({ ...each, window: told.data.default_generation_settings.n_ctx })) : models;
  }
  if (!/organization.owner|lm.?studio/i.test(owners)) return models;
  const told = z.looseObject({ data: z.array(Entry) }).safeParse(await ask("/api/v0/models"));
  const known = new Map((told.success ? told.data.data.flatMap(factsOf) : []).map((each) => [each.id, each]));
  return models.map((each) => ({ ...each, ...known.get(each.id) }));
}

/** Reads the facts of a list entry. Every provider names the same few fields differently. */
function factsOf(entry: z.infer<typeof Entry>): ModelFacts[] {
  const id = entry.id ?? entry.name;
  if (!id) return [];
  const inner = (value: unknown) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});
  const meta = inner(entry.meta);
  const limits = inner(entry.limits);
  const window = [
    entry.loaded_context_length,
    entry.max_model_len,
    meta.n_ctx,
    inner(entry.top_provider).context_length,
    entry.context_length,
    entry.context_window,
    entry.max_context_length,
    limits.max_input_tokens,
    entry.max_input_tokens,
    inner(inner(entry.capabilities).limits).max_context_window_tokens,
  ].find((value): value is number => typeof value === "number" && value > 0);
  const parameters = Array.isArray(entry.supported_parameters) ? entry.supported_parameters : undefined;
  const output = entry.supported_output_modalities ?? inner(entry.architecture).output_modalities;
  const isMute = Array.isArray(output) && !output.includes("text");
  const isEmbedder = isMute || entry.type === "embeddings" || entry.object === "embedding" || NO_CHAT.test(id);
  const calls = Array.isArray(entry.capabilities) && entry.capabilities.some((each) => /^tool/.test(String(each)));
  const input = entry.supported_input_modalities ?? inner(entry.architecture).input_modalities;
  const vision = Array.isArray(input) ? input.includes("image") : entry.type === "vlm" || inner(entry.capabilities).vision;
  return [
    {
      id,
      name: typeof entry.display_name === "string" ? entry.display_name : id,
      ...(window !== undefined && { window }),
      ...(parameters && { tools: parameters.includes("tools"), reasoning: parameters.includes("reasoning") }),
      ...(calls && { tools: true }),
      ...(typeof vision === "boolean" && (vision || Array.isArray(input)) && { vision }),
      ...(isEmbedder && { chats: false }),
    },
  ];
}

const NO_CHAT =
  /embed|rerank|whisper|\btts\b|dall-e|moderation|gpt-image|transcribe|\bsora\b|(?:^|\/)(?:bge|e5|gte|minilm|all-minilm)\b/i;

/** Requests JSON; undefined if that fails. Sends a POST request if there is a body. */
export async function fetchJson(
  url: string,
  headers: Record<string, string>,
  transport: Transport,
  post?: object,
): Promise<unknown> {
  const read = await readJson(url, headers, transport, { post });
  // Many providers have no list. The user's model name is then used unchecked.
  return read instanceof WireFailure ? undefined : read;
}

/** Returns the response as JSON, or the reason for the failure. */
async function readJson(
  url: string,
  headers: Record<string, string>,
  transport: Transport,
  { post, withinMs = LIST_MS }: { post?: object | undefined; withinMs?: number },
): Promise<unknown> {
  try {
    const answer = await transport({
      method: post ? "POST" : "GET",
      url,
      headers,
      ...(post && { body: JSON.stringify(post) }),
      signal: AbortSignal.timeout(withinMs),
    });
    const text = await textOf(answer);
    return answer.status < 400 ? JSON.parse(text) : readRefusal(answer.status, text, answer.headers);
  } catch (error) {
    if (error instanceof WireFailure) return error;
    const isSlow = !(error instanceof SyntaxError);
    return isSlow
      ? new WireFailure(`${new URL(url).host} did not answer within ${withinMs / 1_000} s`, { status: 504, fault: "network" })
      : new WireFailure("what came is no list", { status: 502 });
  }
}

/** Whether an id is a dated version of a name. Providers list dated ids and accept the plain name for the newest. */
function isDated(id: string, name: string): boolean {
  return id.startsWith(`${name}-`) && /^-(?:\d{8}|\d{4}-\d{2}-\d{2})$/.test(id.slice(name.length));
}

/** The chat models with the most similar names, best first. */
export function nearestModels(name: string, available: readonly ModelFacts[], most = 5): string[] {
  const ids = available.filter(({ id, chats }) => chats !== false && id !== name).map(({ id }) => id);
  const words = (id: string) => new Set(id.toLowerCase().split(/[^a-z0-9.]+/));
  const wanted = words(name);
  const close = nearest(name, ids);
  const shared = (id: string) => (id === close ? 100 : [...words(id)].filter((word) => wanted.has(word)).length);
  return ids
    .map((id, at) => ({ id, at, score: shared(id) }))
    .sort((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, most)
    .map(({ id }) => id);
}

/** Normalises a model's name for comparison: "Claude Sonnet 4.5" equals claude-sonnet-4.5. */
function spelling(name: string): string {
  return name.toLowerCase().replace(/[\s-]/g, "");
}

export interface ModelChoiceDeps {
  tiers: Config["modelTiers"];
  /** The default model, and whether a person named it. */
  wanted: string;
  named: boolean;
  available: readonly ModelFacts[];
}

/** Chooses among the available models. If the list is empty, nothing is known and every name is used as it is. */
export function createModelChoice({ tiers, wanted, named, available }: ModelChoiceDeps) {
  const chatting = available.filter(({ chats }) => chats !== false).map(({ id }) => id);
  const isKnown = available.length > 0;
  /** The provider's spelling of a name. Ignores case, spaces and dashes, and adds Ollama's default tag if it is missing. */
  const find = (name: string): string | undefined => {
    if (!isKnown) return name;
    const all = available.map(({ id }) => id);
    const isCased = (id: string) => id.toLowerCase() === name.toLowerCase();
    const isSpelled = (id: string) => spelling(id) === spelling(name);
    const found =
      all.find((id) => id === name) ?? all.find((id) => id === `${name}:latest`) ?? all.find(isCased) ?? all.find(isSpelled);
    return found ?? (all.some((id) => isDated(id, name)) ? name : undefined);
  };
  const substituteFor = (name: string) =>
    nearest(name, chatting) ?? tiers.medium.find((id) => chatting.includes(id)) ?? chatting[0] ?? name;
  const isNamed = named || wanted !== DEFAULT_MODEL;
  const main = find(wanted) ?? (isNamed ? wanted : substituteFor(wanted));
  const shown = `Available: ${namedList(chatting, 12)}.`;
  const notes = find(wanted)
    ? []
    : isNamed
      ? [`The model ${quoted(wanted)} is not in the provider's list; it is asked all the same. ${shown}`]
      : [
          `The model ${quoted(wanted)} is not available; ${quoted(main)} serves instead. ${shown} Name one with "provider.model" in config.json or COPILOT_MODEL.`,
        ];
  return {
    model: main,
    notes,
    serving(name: string): Serving {
      const found = name === wanted ? main : find(name);
      return found === undefined
        ? { model: find(wanted) ?? substituteFor(wanted), standsIn: true }
        : { model: found, standsIn: false };
    },
    forTier(tier: Tier): { model: string; reason: string } {
      const found = isKnown ? tiers[tier].map(find).find((id) => id !== undefined) : undefined;
      if (found) return { model: found, reason: `the first available of tier ${tier}` };
      const why = isKnown ? `none of tier ${tier} is available` : "this provider does not list its models";
      return { model: main, reason: `the default model: ${why}` };
    },
  };
}
export type ModelChoice = ReturnType<typeof createModelChoice>;
