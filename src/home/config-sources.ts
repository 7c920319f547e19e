import { type Config, rawConfig } from "./config.ts";

/** The variables that override a key of `config.json`, strongest first. */
const VARIABLES: Partial<Record<keyof Config, readonly string[]>> = {
  mode: ["IO_MODE"],
  host: ["IO_HOST"],
  port: ["IO_PORT"],
  telegramBotToken: ["TELEGRAM_BOT_TOKEN"],
  telegramApiRoot: ["IO_TELEGRAM_API_ROOT"],
  githubToken: ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
};

/** For each key that is not at its default: `config.json`, or the name of the variable that set it. */
export function configSources(path: string, env: NodeJS.ProcessEnv): Record<string, string> {
  const sources = Object.fromEntries(Object.keys(rawConfig(path)).map((key) => [key, "config.json"]));
  for (const [key, names] of Object.entries(VARIABLES)) {
    const set = names.find((name) => env[name]);
    if (set !== undefined) sources[key] = set;
  }
  return sources;
}
