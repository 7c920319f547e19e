import { type Config, loadConfig } from "./config.ts";

/** The config as it is now, for everybody who has to follow it while the daemon runs. */
export interface LiveConfig {
  current(): Config;
  /** Takes over a config that was just written. */
  replace(config: Config): void;
}

/** What a start was told on its command line holds for that life, whatever the file says. */
export function createLiveConfig(path: string, forThisLife: Partial<Config> = {}): LiveConfig {
  let config: Config = { ...loadConfig(path), ...forThisLife };
  return {
    current: () => config,
    replace: (next) => {
      config = { ...next, ...forThisLife };
    },
  };
}
