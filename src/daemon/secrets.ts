import type { Config } from "../home/config.ts";
import type { LiveConfig } from "../home/live-config.ts";
import type { Redactor } from "../lib/redact.ts";

const SECRET_VARIABLES = [
  "COPILOT_PROVIDER_API_KEY",
  "COPILOT_PROVIDER_BEARER_TOKEN",
  "COPILOT_GITHUB_TOKEN",
  "GH_TOKEN",
  "GITHUB_TOKEN",
  "GH_ENTERPRISE_TOKEN",
  "GITHUB_ENTERPRISE_TOKEN",
  "GITEA_TOKEN",
  "FORGEJO_TOKEN",
  "TELEGRAM_BOT_TOKEN",
];

/** Every secret IO knows. */
export function secretsOf(config: Config, env: NodeJS.ProcessEnv, token: string | undefined): (string | undefined)[] {
  const named = [
    ...[config.provider?.apiKeyEnv, config.provider?.bearerTokenEnv],
    ...[config.github.tokenEnv, config.gitea?.tokenEnv],
  ];
  return [
    token,
    config.telegramBotToken,
    config.githubToken,
    config.forge.webhookSecret,
    config.provider?.apiKey,
    ...Object.entries(config.provider?.headers ?? {}).map(([name, value]) =>
      /auth|key|token|secret|cookie/i.test(name) ? value : undefined,
    ),
    ...named.map((name) => (name ? env[name] : undefined)),
    ...SECRET_VARIABLES.map((name) => env[name]),
  ];
}

/** The same config, but the secrets of every later version are redacted too. */
export function hideNewSecrets(
  settings: LiveConfig,
  { redactor, env, token }: { redactor: Redactor; env: NodeJS.ProcessEnv; token: string },
): LiveConfig {
  return {
    current: settings.current,
    replace(config) {
      settings.replace(config);
      for (const secret of secretsOf(config, env, token)) redactor.hide(secret);
    },
  };
}
