import { remoteOf } from "../git/remote.ts";
import type { Config } from "../lib/config.ts";
import type { Paths } from "../lib/paths.ts";
import type { Origin } from "../protocol/squads.ts";
import type { Skills } from "../skills/open.ts";
import { skillTools } from "../skills/tools.ts";
import type { Squads } from "../squads/squads.ts";
import { squadTools } from "../squads/tools.ts";
import type { Messages } from "../store/messages.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import { swarmTools } from "../swarm/tools.ts";
import { checkUpdate } from "../tools/check-update.ts";
import { configUpdate } from "../tools/config-update.ts";
import { github } from "../tools/github.ts";
import type { Tool } from "../tools/tool.ts";
import { webFetch } from "../tools/web-fetch.ts";
import { wikiTools } from "../wiki/tools.ts";
import type { Wiki } from "../wiki/wiki.ts";
import type { Core } from "./core.ts";

export interface ToolDeps {
  core: Core;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  version: string;
  config: () => Config;
  onConfig: (config: Config, key: string) => void;
  messages: Messages;
  wiki: Wiki;
  skills: Skills;
  squads: Squads;
  swarm: Swarm;
  /** For whom a call is made. */
  originOf: (messageId: string) => Origin;
  onRunStarted: (messageId: string, runId: string) => void;
}

/** Everything the orchestrator can do, feature by feature. */
export function orchestratorTools(deps: ToolDeps): Tool[] {
  const { core, env, paths, version, config, onConfig, messages, wiki, skills, squads, swarm, originOf, onRunStarted } = deps;
  const { machine, redactor, sandbox, programs, git } = core;
  return [
    ...wikiTools(wiki),
    ...swarmTools({
      swarm,
      env,
      squad: (slug) => squads.projectOf(slug),
      conversationOf: (owner) => messages.find(owner)?.conversation,
      onStarted: onRunStarted,
    }),
    machine.shell,
    webFetch({ allow: () => config().webFetchAllow }),
    machine.files,
    github({ redactor, wrap: sandbox.wrap, program: () => programs.find("gh"), env, here: (cwd) => remoteOf(git, cwd) }),
    ...skillTools(skills),
    ...squadTools(squads, originOf),
    configUpdate({ configPath: paths.config, onChange: onConfig }),
    checkUpdate({ version, registry: () => config().updateRegistry, env }),
  ];
}

const SHARED_WITH_AGENTS = ["wiki_read", "wiki_write", "wiki_search", "wiki_list"];

/** What every agent of a squad may use. */
export function agentTools({ machine }: Core, wiki: Wiki): Tool[] {
  return [machine.shell, machine.files, ...wikiTools(wiki).filter(({ name }) => SHARED_WITH_AGENTS.includes(name))];
}
