import type { Config } from "../../home/config.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { createRehearsal, REHEARSAL } from "../rehearsal/transport.ts";
import type { Model } from "../rehearsal/wire.ts";
import { createProxyChoice } from "../wire/proxy.ts";
import { createHttpTransport, type Transport } from "../wire/transport.ts";
import type { TurnError } from "./failures.ts";
import type { Choice } from "./ladder.ts";
import { createModelChoice, type ModelChoice, type ModelFacts, readList } from "./models.ts";
import { createOllama } from "./ollama.ts";
import { endpointOf } from "./provider.ts";

export interface ModelListDeps {
  choice: Choice;
  config: () => Config;
  env: NodeJS.ProcessEnv;
  rehearsal: Model;
  log: Log;
  /** Lists GitHub Copilot's models, which only the runtime can do. Throws `ListFailed`. */
  listOfGitHub: () => Promise<ModelFacts[]>;
  /** The current runtime. The list is requested again after it was replaced, since each runtime has to get it from GitHub. */
  lifeOf: () => Promise<object | undefined>;
}

/** GitHub's models could not be listed, so no GitHub model can be used. */
export class ListFailed extends Error {
  override readonly name = "ListFailed";
  readonly why: TurnError;
  constructor(why: TurnError) {
    super(why.message);
    this.why = why;
  }
}

/** The available models, listed once, and the choice among them by the current config. */
export interface ModelList {
  transport: Transport;
  /** Resolves when the models are listed and this one's details are known. Returns the failure if no model can be used. */
  ready(model?: string): Promise<TurnError | undefined>;
  available(): readonly ModelFacts[];
  choice(): ModelChoice;
}

const PLAYED: ModelFacts = { id: REHEARSAL, name: REHEARSAL };

export function createModelList({ choice, config, env, rehearsal, log, listOfGitHub, lifeOf }: ModelListDeps): ModelList {
  const { provider, kind } = choice;
  const transport =
    kind === "rehearsal" ? createRehearsal(rehearsal) : createHttpTransport(createProxyChoice({ env, always: provider?.proxy }));
  let ollama = kind === "ollama" ? createOllama(config().ollamaUrl, transport) : undefined;
  const first = config();
  let available: ModelFacts[] = kind === "rehearsal" ? [PLAYED] : [];
  let listed: Promise<TurnError | undefined> | undefined;
  let listedIn: object | undefined;
  let seen = first;
  let chosen = choose();

  /** A model that was named outside the config stays the same when the config changes. */
  function choose(): ModelChoice {
    seen = config();
    const { modelTiers, defaultModel } = seen;
    const wanted = choice.model === first.defaultModel ? defaultModel : choice.model;
    return createModelChoice({ tiers: modelTiers, wanted, named: choice.named, available });
  }

  async function list(): Promise<TurnError | undefined> {
    try {
      available = await asked();
    } catch (error) {
      log.warn("the models could not be listed", { error: messageOf(error) });
      if (error instanceof ListFailed) return error.why;
    }
    chosen = choose();
    for (const note of chosen.notes) log.warn(note);
    return undefined;
  }

  async function asked(): Promise<ModelFacts[]> {
    if (kind === "rehearsal") return [PLAYED];
    if (kind === "copilot") return listOfGitHub();
    if (ollama) return ((await ollama.names()) ?? []).map((id) => ({ id, name: id }));
    // Azure lists the models that can be deployed, but requests use the names of deployments.
    if (!provider || provider.type === "azure") return [];
    const endpoint = endpointOf(provider);
    const { models, isOllama } = await readList(endpoint, transport);
    if (isOllama) ollama = createOllama(endpoint.origin, transport, endpoint.headers);
    return models;
  }

  /** Reads one model's details from Ollama. Its window is read each time, since it changes when Ollama loads the model. */
  async function lookCloser(model: string): Promise<void> {
    if (!ollama) return;
    const [facts, loaded] = await Promise.all([
      available.find(({ id, window }) => id === model && window !== undefined) ?? ollama.facts(model),
      ollama.loaded(),
    ]);
    const window = loaded.get(model) ?? facts.window;
    available = [...available.filter(({ id }) => id !== model), { ...facts, ...(window !== undefined && { window }) }];
  }

  return {
    transport,
    async ready(model) {
      const life = kind === "copilot" ? await lifeOf() : undefined;
      if (life !== listedIn) listed = undefined;
      listedIn = life;
      listed ??= list().then((failure) => {
        if (failure) listed = undefined;
        return failure;
      });
      const failure = await listed;
      if (!failure) await lookCloser(model ?? chosen.model);
      return failure;
    },
    available: () => available,
    choice() {
      if (config() !== seen) chosen = choose();
      return chosen;
    },
  };
}
