import { createProxyChoice } from "../wire/proxy.ts";
import { createHttpTransport } from "../wire/transport.ts";
import { callFailed, type SettingNames } from "./failures.ts";
import { type ModelFacts, readList } from "./models.ts";
import { createOllama } from "./ollama.ts";
import { endpointOf, type Provider } from "./provider.ts";

/** The models that a person can choose from, or why there are none to choose from. */
export interface Offer {
  models: ModelFacts[];
  trouble?: string;
}

const PATIENCE_MS = 10_000;
const MOST_CLOSER = 20;

/** Asks a provider which of its models one can talk with. */
export async function offerModels(provider: Provider, names: SettingNames, env: NodeJS.ProcessEnv): Promise<Offer> {
  // What Azure lists could be deployed; what is deployed, it does not say.
  if (provider.type === "azure") return { models: [] };
  const endpoint = endpointOf(provider);
  const transport = createHttpTransport(createProxyChoice({ env, always: provider.proxy }));
  const { models, isOllama, failure } = await readList(endpoint, transport, PATIENCE_MS);
  if (failure) return { models: [], trouble: callFailed(failure, "", names).message };
  if (!isOllama) return { models: models.filter(({ chats }) => chats !== false) };
  const ollama = createOllama(endpoint.origin, transport, endpoint.headers);
  const closer = await Promise.all(models.slice(0, MOST_CLOSER).map(({ id }) => ollama.facts(id)));
  return { models: [...closer, ...models.slice(MOST_CLOSER)].filter(({ chats }) => chats !== false) };
}
