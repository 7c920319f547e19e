import { z } from "zod";
import { type Config, DEFAULT_MODEL, nearest } from "../lib/config.ts";
import type { Serving, Tier } from "./port.ts";
import type { Endpoint } from "./provider.ts";
import { textOf } from "./wire/exchange.ts";
import type { Transport } from "./wire/transport.ts";

/** What is known of a model. */
export interface ModelFacts {
  id: string;
  name: string;
  /** Tokens of prompt and answer together. */
  window?: number;
  tools?: boolean;
  reasoning?: boolean;
  /** False for one that cannot be talked with, such as an embedder. */
  chats?: boolean;
}

const Entry = z.looseObject({ id: z.string().optional(), name: z.string().optional() });
const List = z.union([
  z.array(Entry),
  z.looseObject({ data: z.array(Entry) }).transform(({ data }) => data),
  z.looseObject({ models: z.array(Entry) }).transform(({ models }) => models),
]);
const LIST_MS = 2_000;

/** Asks a provider which models it has; none if it does not say. */
export async function listModels({ list, origin, headers }: Endpoint, transport: Transport): Promise<ModelFacts[]> {
  const listed = List.safeParse(await fetchJson(list, headers, transport));
  if (!listed.success) return [];
  const facts = listed.data.flatMap(factsOf);
  const owners = listed.data.map(({ owned_by }) => String(owned_by)).join(" ");
  if (facts.some(({ window }) => window !== undefined) || !TELL_ELSEWHERE.test(owners)) return facts;
  return withLocalWindows(facts, origin, headers, transport);
}

/** How llama.cpp and LM Studio sign their lists. */
const TELL_ELSEWHERE = /llama\.?cpp|organization.owner|lm.?studio/i;

/** Two servers that run on one's own machine tell their windows elsewhere. */
async function withLocalWindows(
  facts: ModelFacts[],
  origin: string,
  headers: Record<string, string>,
  transport: Transport,
): Promise<ModelFacts[]> {
  const [props, own] = await Promise.all([
    fetchJson(`${origin}/props`, headers, transport),
    fetchJson(`${origin}/api/v0/models`, headers, transport),
  ]);
  const shared = z.looseObject({ default_generation_settings: z.looseObject({ n_ctx: z.number() }) }).safeParse(props);
  const told = z.looseObject({ data: z.array(Entry) }).safeParse(own);
  const known = new Map((told.success ? told.data.data.flatMap(factsOf) : []).map((each) => [each.id, each]));
  const window = shared.success ? shared.data.default_generation_settings.n_ctx : undefined;
  return facts.map((each) => ({ ...each, ...(window !== undefined && { window }), ...known.get(each.id) }));
}

/** Every provider has its own word for the same few facts. */
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
    inner(inner(entry.capabilities).limits).max_context_window_tokens,
  ].find((value): value is number => typeof value === "number" && value > 0);
  const parameters = Array.isArray(entry.supported_parameters) ? entry.supported_parameters : undefined;
  const isEmbedder = entry.type === "embeddings" || entry.object === "embedding" || NO_CHAT.test(id);
  return [
    {
      id,
      name: typeof entry.display_name === "string" ? entry.display_name : id,
      ...(window !== undefined && { window }),
      ...(parameters && { tools: parameters.includes("tools"), reasoning: parameters.includes("reasoning") }),
      ...(isEmbedder && { chats: false }),
    },
  ];
}

const NO_CHAT =
  /embed|rerank|whisper|\btts\b|dall-e|moderation|gpt-image|transcribe|\bsora\b|(?:^|\/)(?:bge|e5|gte|minilm|all-minilm)\b/i;

/** The answer of a GET as JSON; undefined for any other answer, or none. */
export async function fetchJson(
  url: string,
  headers: Record<string, string>,
  transport: Transport,
  post?: object,
): Promise<unknown> {
  try {
    const answer = await transport({
      method: post ? "POST" : "GET",
      url,
      headers,
      ...(post && { body: JSON.stringify(post) }),
      signal: AbortSignal.timeout(LIST_MS),
    });
    const text = await textOf(answer);
    return answer.status < 400 ? JSON.parse(text) : undefined;
  } catch {
    // Many providers have no list; what a person says is then taken at its word.
    return undefined;
  }
}

export interface ModelChoiceParts {
  tiers: Config["modelTiers"];
  /** What is asked for when nobody says anything else, and whether a person named it. */
  wanted: string;
  named: boolean;
  available: readonly ModelFacts[];
}

/** Which model serves, given what is available. An empty list means that nobody knows: every name is then taken as it is. */
export function createModelChoice({ tiers, wanted, named, available }: ModelChoiceParts) {
  const chatting = available.filter(({ chats }) => chats !== false).map(({ id }) => id);
  const isKnown = available.length > 0;
  /** A name as the provider spells it; a tag that goes without saying is added. */
  const find = (name: string): string | undefined => {
    if (!isKnown) return name;
    const all = available.map(({ id }) => id);
    const alike = (each: string) => each.toLowerCase() === name.toLowerCase();
    return all.find((id) => id === name) ?? all.find((id) => id === `${name}:latest`) ?? all.find(alike);
  };
  const standIn = (name: string) =>
    nearest(name, chatting) ?? tiers.medium.find((id) => chatting.includes(id)) ?? chatting[0] ?? name;
  const isNamed = named || wanted !== DEFAULT_MODEL;
  const main = find(wanted) ?? (isNamed ? wanted : standIn(wanted));
  const shown = `Available: ${chatting.slice(0, 12).join(", ")}${chatting.length > 12 ? ", …" : ""}.`;
  const notes = find(wanted)
    ? []
    : isNamed
      ? [`The model "${wanted}" is not in the provider's list; it is asked all the same. ${shown}`]
      : [
          `The model "${wanted}" is not available; "${main}" serves instead. ${shown} Name one with "provider.model" in config.json or COPILOT_MODEL.`,
        ];
  return {
    model: main,
    notes,
    serving(name: string): Serving {
      const found = name === wanted ? main : find(name);
      return found === undefined ? { model: find(wanted) ?? standIn(wanted), standsIn: true } : { model: found, standsIn: false };
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
