import { isVariable, keyAdvice } from "../engine/models/keys.ts";
import type { ModelFacts } from "../engine/models/models.ts";
import { nearestModels } from "../engine/models/models.ts";
import { offerModels } from "../engine/models/offer.ts";
import { PRESETS, type Preset, presetAt } from "../engine/models/presets.ts";
import { endpointOf, type Provider, typeOf } from "../engine/models/provider.ts";
import { nearest, type ProviderConfig } from "../home/config.ts";
import { usageError } from "../lib/errors.ts";

/** Asks until an answer is valid. An empty answer, or the end of input, selects the fallback. */
export type Ask = (
  question: string,
  options: {
    /** Identifies the question, for callers that already have answers. */
    id: "provider" | "address" | "key" | "model" | "default model" | "port";
    fallback?: string;
    /** The choices, as text and one by one. */
    list?: string;
    choices?: { value: string; hint?: string }[];
    hidden?: boolean;
    /** Throws a `UserError` for an invalid answer. */
    check?: (answer: string) => void;
  },
) => Promise<string>;

/** A provider as config.json will contain it. */
type Draft = Partial<ProviderConfig> & { type: Provider["type"]; baseUrl: string };

export interface ProviderQuestions {
  before: ProviderConfig | undefined;
  env: NodeJS.ProcessEnv;
  note: (text: string) => void;
  /** Throws a `UserError` if a configuration with this provider is invalid. */
  fits: (draft: Draft) => void;
}

const NONE = "none";
const THE_SAME = "the one that is set";
const MOST_SHOWN = 40;

/** Asks for a provider and its settings. Undefined removes the provider from the configuration. */
export async function askProvider(ask: Ask, parts: ProviderQuestions): Promise<Draft | undefined | "as it is"> {
  const { before, env, note, fits } = parts;
  const current = before && presetOf(before);
  const picked = await ask("Your model's provider, by number or name, or its address", {
    id: "provider",
    list: menu(env),
    fallback: current?.name ?? NONE,
    check: (answer) => {
      const found = pick(answer);
      if (typeof found === "string" && found !== NONE) fits({ type: "openai", baseUrl: addressIn(found) });
    },
  });
  const choice = pick(picked);
  if (choice === NONE) return before ? undefined : "as it is";
  const preset = typeof choice === "string" ? presetOf({ baseUrl: addressIn(choice), type: "openai" }) : choice;
  const same = before && current?.name === preset.name ? before : undefined;
  note(preset.hint);

  const baseUrl = typeof choice === "string" ? addressIn(choice) : await askAddress(ask, preset, same, fits);
  let draft = draftOf(preset, baseUrl, same);
  draft = await askKey(ask, draft, { preset, same, env, note, fits });
  draft = await askModel(ask, draft, parts);
  return before && JSON.stringify(sorted(draft)) === JSON.stringify(sorted(withoutDefaults(before))) ? "as it is" : draft;
}

function menu(env: NodeJS.ProcessEnv): string {
  const lines = PRESETS.map(({ name, title, variables }, at) => {
    const set = variables.find((variable) => env[variable]);
    return `${String(at + 1).padStart(3)}  ${name.padEnd(14)} ${title}${set ? ` (${set} is set)` : ""}`;
  });
  const last = `${String(PRESETS.length + 1).padStart(3)}  ${NONE.padEnd(14)} GitHub Copilot, a local Ollama, or what the environment says`;
  return [...lines, last].join("\n");
}

/** The selected preset, an address, or none. */
function pick(answer: string): Preset | string {
  const number = /^\d+$/.test(answer) ? Number(answer) : undefined;
  if (answer.toLowerCase() === NONE || number === PRESETS.length + 1) return NONE;
  const found = number === undefined ? byAnyName(answer) : PRESETS[number - 1];
  if (found) return found;
  if (number === undefined && /[:.]/.test(answer)) return answer;
  const names = [...PRESETS.map(({ name }) => name), NONE];
  const near = nearest(answer, names);
  throw usageError(
    `No provider is called "${answer}".${near ? ` Did you mean "${near}"?` : ""} Allowed: 1 to ${PRESETS.length + 1}, ${names.join(", ")}, or an address.`,
  );
}

function byAnyName(answer: string): Preset | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z]/g, "");
  return PRESETS.find(({ name, title }) => plain(name) === plain(answer) || plain(title) === plain(answer));
}

function byName(wanted: string): Preset {
  return PRESETS.find(({ name }) => name === wanted)!;
}

/** The preset of a configured provider. */
function presetOf({ baseUrl, type }: Pick<ProviderConfig, "baseUrl" | "type">): Preset {
  const origin = new URL(baseUrl).origin.replace("localhost", "127.0.0.1");
  return (
    presetAt(baseUrl) ??
    PRESETS.find(({ address }) => address !== undefined && new URL(address).origin === origin) ??
    PRESETS.find((preset) => preset.type === type && type !== "openai") ??
    byName("other")
  );
}

/** Adds the usual scheme to an address that was typed without one. */
function addressIn(typed: string): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(typed)) return typed;
  return `${/^(?:localhost|[\d.]+|\[[\d:a-f]+\])(?::|\/|$)/i.test(typed) ? "http" : "https"}://${typed}`;
}

async function askAddress(ask: Ask, preset: Preset, same: ProviderConfig | undefined, fits: ProviderQuestions["fits"]) {
  const fallback = same?.baseUrl ?? preset.address;
  const question = preset.type === "azure" ? "Its endpoint or target URI, as the portal shows it" : "Its address";
  const check = (answer: string) => fits({ type: preset.type, baseUrl: addressIn(answer) });
  const typed = await ask(question, { id: "address", ...(fallback !== undefined && { fallback }), check });
  if (typed === "") throw usageError(`${preset.title} needs an address: everybody has one of their own. Nothing was changed.`);
  return addressIn(typed);
}

function draftOf(preset: Preset, baseUrl: string, same: ProviderConfig | undefined): Draft {
  if (same) return { ...withoutDefaults(same), baseUrl };
  const type = typeOf({ type: preset.type, baseUrl });
  const wireApi = /\/responses\/?(?:\?|$)/.test(baseUrl) ? "responses" : preset.wireApi;
  return { type, baseUrl, ...(wireApi === "responses" && type !== "anthropic" && { wireApi }) };
}

interface KeyQuestions extends Omit<ProviderQuestions, "before"> {
  preset: Preset;
  same: ProviderConfig | undefined;
}

async function askKey(ask: Ask, draft: Draft, { preset, same, env, note, fits }: KeyQuestions): Promise<Draft> {
  if (!preset.needsKey && preset.variables.length === 0 && preset.name !== "other") return draft;
  const kept = same?.apiKeyEnv ?? (same?.apiKey || same?.bearerTokenEnv ? THE_SAME : undefined);
  const fallback = kept ?? preset.variables.find((name) => env[name]) ?? "";
  const withKey = (answer: string): Draft => {
    const { apiKey: _, apiKeyEnv: __, ...rest } = draft;
    const name = /^\$\{?(\w+)\}?$/.exec(answer)?.[1] ?? (isVariable(answer) || env[answer] !== undefined ? answer : undefined);
    return name === undefined ? { ...rest, apiKey: answer } : { ...rest, apiKeyEnv: name };
  };
  const typed = await ask(
    `Its API key, or the name of the variable that holds it (not shown${preset.needsKey ? "" : "; empty: none"})`,
    { id: "key", fallback, hidden: true, check: (answer) => fits(withKey(answer)) },
  );
  if (typed === "" && preset.needsKey)
    note(`${preset.title} answers only to a key: it can be given later, by provider.apiKeyEnv.`);
  if (typed === "" || typed === kept) return draft;
  const next = withKey(typed);
  if (next.apiKeyEnv && !env[next.apiKeyEnv]) note(`${next.apiKeyEnv} is not set here. Set it where IO is started.`);
  return next;
}

async function askModel(ask: Ask, draft: Draft, { env, note, fits }: ProviderQuestions): Promise<Draft> {
  const inAddress = endpointOf(providerOf(draft, env)).model;
  const isAzure = draft.type === "azure";
  const { models, trouble } = await offerModels(providerOf(draft, env), namesOf(draft, env), env);
  if (trouble) note(`Its models could not be listed: ${trouble}`);
  const shownModels = models.filter(({ id }) => !isSnapshot(id, models));
  const offered = shownModels.slice(0, MOST_SHOWN);
  const only =
    shownModels.length <= 20
      ? (shownModels.find(({ tools }) => tools) ?? (shownModels.length === 1 ? shownModels[0] : undefined))
      : undefined;
  const fallback = draft.model ?? inAddress ?? (isAzure ? undefined : only?.id) ?? "";
  const modelIn = (answer: string) => (/^\d{1,2}$/.test(answer) ? offered[Number(answer) - 1]?.id : undefined) ?? answer;
  const question = isAzure ? "Its deployment's name" : offered.length > 0 ? "Its model, by number or name" : "Its model's name";
  const typed = await ask(question, {
    id: "model",
    fallback,
    ...(offered.length > 0 && {
      list: listed(offered, shownModels.length),
      choices: offered.map((each) => ({ value: each.id, hint: factsOf(each) })),
    }),
    check: (answer) => {
      if (/^\d{1,2}$/.test(answer) && offered.length > 0 && modelIn(answer) === answer)
        throw usageError(`There is no model ${answer} in the list. Allowed: 1 to ${offered.length}, or a name.`);
      fits({ ...draft, model: modelIn(answer) });
    },
  });
  const model = modelIn(typed);
  if (model === "") note("No model is named: what is nearest to defaultModel serves.");
  if (model !== "" && models.length > 0 && !isOffered(model, models))
    note(
      `"${model}" is not in its list, and is asked for all the same. Nearest there: ${nearestModels(model, models).join(", ")}.`,
    );
  return model === "" || (model === inAddress && draft.model === undefined) ? draft : { ...draft, model };
}

function isOffered(model: string, models: readonly ModelFacts[]): boolean {
  return models.some(({ id }) => id === model || id === `${model}:latest` || id.startsWith(`${model}-20`));
}

/** Whether a dated model is listed beside its undated name, which always points to the newest. */
function isSnapshot(id: string, models: readonly ModelFacts[]): boolean {
  const name = /^(.+)-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4})$/.exec(id)?.[1];
  return name !== undefined && models.some((other) => other.id === name);
}

function listed(models: readonly ModelFacts[], all: number): string {
  const lines = models.map((model, at) => {
    const facts = factsOf(model);
    return `${String(at + 1).padStart(3)}  ${model.id}${facts === "" ? "" : ` (${facts})`}`;
  });
  return [...lines, ...(all > models.length ? [`     and ${all - models.length} more, by name`] : [])].join("\n");
}

function factsOf({ window, tools }: ModelFacts): string {
  return [...(window ? [`${window.toLocaleString("en")} tokens`] : []), ...(tools === false ? ["no tools"] : [])].join(", ");
}

function providerOf({ apiKey, apiKeyEnv, bearerTokenEnv, ...draft }: Draft, env: NodeJS.ProcessEnv): Provider {
  const key = apiKey ?? (apiKeyEnv ? env[apiKeyEnv] : undefined);
  const token = bearerTokenEnv ? env[bearerTokenEnv] : undefined;
  const { type, baseUrl, wireApi = "completions", headers, apiVersion, proxy } = draft;
  return {
    type,
    baseUrl,
    wireApi,
    ...(key && { apiKey: key.trim() }),
    ...(token && { bearerToken: token.trim() }),
    ...(headers && { headers }),
    ...(apiVersion && { apiVersion }),
    ...(proxy && { proxy }),
  };
}

function namesOf(draft: Draft, env: NodeJS.ProcessEnv) {
  const { apiKey, bearerToken, baseUrl, type } = providerOf(draft, env);
  const setting = draft.apiKeyEnv ?? "the one given here";
  const toName = (variable: string) => `give ${isVariable(variable) ? variable : "one"} here`;
  const advice = keyAdvice({ key: bearerToken ?? apiKey, setting, toName, baseUrl, address: "the one given here", type, env });
  return { address: "the one given here", key: setting, model: "its name", keyAdvice: advice };
}

/** Leaves defaults out, as a person would. */
function withoutDefaults({ models, headers, wireApi, ...rest }: ProviderConfig): Draft {
  return {
    ...rest,
    ...(wireApi === "responses" && { wireApi }),
    ...(models.length > 0 && { models }),
    ...(Object.keys(headers).length > 0 && { headers }),
  };
}

function sorted(draft: Draft): unknown {
  return Object.entries(draft)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => a.localeCompare(b));
}
