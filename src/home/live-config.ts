import { type Config, loadConfig } from "./config.ts";

/** The current config, for everything that follows its changes while the daemon runs. */
export interface LiveConfig {
  current(): Config;
  /** Applies a config that was just written. */
  replace(config: Config): void;
}

/** Settings from the command line override the file for this start. */
export function createLiveConfig(path: string, overrides: Partial<Config> = {}): LiveConfig {
  let config: Config = { ...loadConfig(path), ...overrides };
  return {
    current: () => config,
    replace: (next) => {
      config = { ...next, ...overrides };
    },
  };
}
