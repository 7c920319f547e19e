import { findGitHubLogin, type GitHubLogin } from "../engine/models/github.ts";
import { createOllama } from "../engine/models/ollama.ts";
import { PRESETS, type Preset } from "../engine/models/presets.ts";
import { createProxyChoice } from "../engine/wire/proxy.ts";
import { createHttpTransport } from "../engine/wire/transport.ts";
import type { Config } from "../home/config.ts";

/** The possible models on this machine, found without the network. */
export interface Found {
  login: GitHubLogin | undefined;
  /** Why apparent logins are not usable. */
  passedOver: string[];
  /** The address in COPILOT_PROVIDER_BASE_URL. */
  environment: string | undefined;
  ollama: { url: string; models: string[] } | undefined;
  /** Providers whose usual variable contains a key. */
  keys: { preset: Preset; variable: string }[];
}

export async function findModels(config: Config, env: NodeJS.ProcessEnv): Promise<Found> {
  const transport = createHttpTransport(createProxyChoice({ env }));
  const [github, models] = await Promise.all([
    findGitHubLogin(env, config.githubToken),
    createOllama(config.ollamaUrl, transport).names(),
  ]);
  return {
    login: github.login,
    passedOver: github.passedOver,
    environment: env.COPILOT_PROVIDER_BASE_URL || undefined,
    ollama: models && { url: config.ollamaUrl, models },
    keys: PRESETS.flatMap((preset) => {
      const variable = preset.variables.find((name) => env[name]);
      return variable === undefined ? [] : [{ preset, variable }];
    }),
  };
}
