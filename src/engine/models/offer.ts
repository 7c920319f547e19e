import { createProxyChoice } from "../wire/proxy.ts";
import { createHttpTransport } from "../wire/transport.ts";
import { callFailed, type SettingNames } from "./failures.ts";
import { type ModelFacts, readList } from "./models.ts";
import { createOllama } from "./ollama.ts";
import { endpointOf, type Provider } from "./provider.ts";

/** The models for a person to choose from, or why the list could not be read. */
export interface Offer {
  models: ModelFacts[];
  trouble?: string;
}

const PATIENCE_MS = 10_000;
const MOST_CLOSER = 20;

/** Lists a provider's chat models. */
export async function offerModels(provider: Provider, names: SettingNames, env: NodeJS.ProcessEnv): Promise<Offer> {
  // Azure lists the models that can be deployed, not those that are.
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
