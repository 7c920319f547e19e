import { chooseEngine } from "../engine/models/ladder.ts";
import { loadConfig } from "../home/config.ts";
import { modeFrom } from "../home/modes.ts";
import { pathsOf } from "../home/paths.ts";
import { addressOf } from "./address.ts";

/** Throws what a start in this environment would refuse: a bad config.json, mode, address or choice of model. */
export async function checkStart(env: NodeJS.ProcessEnv): Promise<void> {
  const config = loadConfig(pathsOf(env).config);
  modeFrom(env);
  addressOf(config, env);
  await chooseEngine(config, env);
}
