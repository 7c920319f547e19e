import { z } from "zod";
import { type Config, nearest } from "../lib/config.ts";
import type { Choice } from "./ladder.ts";
import type { Serving, Tier } from "./port.ts";

export interface ModelName {
  id: string;
  name: string;
}

const ModelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });

/** Asks a provider which models it has; none if it does not say. */
export async function listProviderModels({ provider }: Choice): Promise<ModelName[]> {
  if (!provider) return [];
  const secret = provider.bearerToken ?? provider.apiKey;
  try {
    const response = await fetch(`${provider.baseUrl.replace(/\/$/, "")}/models`, {
      headers: secret ? { authorization: `Bearer ${secret}`, "x-api-key": secret } : {},
      signal: AbortSignal.timeout(2_000),
    });
    return ModelList.parse(await response.json()).data.map(({ id }) => ({ id, name: id }));
  } catch {
    // Many providers have no list; the model is then taken at its word.
    return [];
  }
}

/** Which model serves, given what is available. An empty list means that nobody knows: every name is then taken as it is. */
export function createModelChoice({ modelTiers }: Pick<Config, "modelTiers">, wanted: string, available: readonly ModelName[]) {
  const ids = available.map((model) => model.id);
  const has = (id: string) => ids.length === 0 || ids.includes(id);
  const standIn = (id: string) => nearest(id, ids) ?? modelTiers.medium.find(has) ?? ids[0] ?? id;
  const main = has(wanted) ? wanted : standIn(wanted);
  const notes =
    main === wanted
      ? []
      : [`The model "${wanted}" is not available; "${main}" serves instead. Available: ${ids.slice(0, 12).join(", ")}.`];
  return {
    model: main,
    notes,
    serving: (name: string): Serving => (has(name) ? { model: name, standsIn: false } : { model: main, standsIn: true }),
    forTier(tier: Tier): { model: string; reason: string } {
      const found = ids.length === 0 ? undefined : modelTiers[tier].find(has);
      if (found) return { model: found, reason: `the first available of tier ${tier}` };
      return {
        model: main,
        reason:
          ids.length === 0
            ? `the default model: this provider does not list its models`
            : `the default model: none of tier ${tier} is available`,
      };
    },
  };
}
export type ModelChoice = ReturnType<typeof createModelChoice>;
