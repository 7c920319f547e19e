import { remoteOf } from "../git/remote.ts";
import type { Config } from "../home/config.ts";
import type { Paths } from "../home/paths.ts";
import type { Message, Source } from "../protocol/messages.ts";
import type { Origin } from "../protocol/squads.ts";
import type { Schedules } from "../schedules/schedules.ts";
import { scheduleTools } from "../schedules/tools.ts";
import type { Skills } from "../skills/open.ts";
import { skillTools } from "../skills/tools.ts";
import type { Squads } from "../squads/squads.ts";
import { squadTools } from "../squads/tools.ts";
import { createMessageSearch } from "../store/message-search.ts";
import type { Messages } from "../store/messages.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import { swarmTools } from "../swarm/tools.ts";
import { checkUpdate } from "../tools/check-update.ts";
import { configUpdate } from "../tools/config-update.ts";
import { conversationSearch } from "../tools/conversation-search.ts";
import { github } from "../tools/github.ts";
import type { Tool } from "../tools/tool.ts";
import { webFetch } from "../tools/web-fetch.ts";
import { type Rules, ruleTool } from "../wiki/rules.ts";
import { wikiTools } from "../wiki/tools.ts";
import type { Core } from "./core.ts";
import type { Memory } from "./memory.ts";

export interface ToolDeps {
  core: Core;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  version: string;
  config: () => Config;
  onConfig: (config: Config, key: string) => void;
  messages: Messages;
  memory: Memory;
  rules: Rules;
  skills: Skills;
  squads: Squads;
  swarm: Swarm;
  schedules: Schedules;
  /** The conversation and source that a call is made for. */
  originOf: (messageId: string) => Origin;
  onRunStarted: (messageId: string, runId: string) => void;
}

/** Everything the orchestrator can do, feature by feature. */
export function orchestratorTools(deps: ToolDeps): Tool[] {
  const {
    core,
    env,
    paths,
    version,
    config,
    onConfig,
    messages,
    memory,
    rules,
    skills,
    squads,
    swarm,
    schedules,
    originOf,
    onRunStarted,
  } = deps;
  const { machine, redactor, sandbox, programs, git } = core;
  return [
    ...wikiTools(memory),
    ruleTool(rules, (owner) => saidIn(messages.find(owner))),
    conversationSearch(createMessageSearch(core.store)),
    ...swarmTools({
      swarm,
      env,
      squad: (slug) => squads.projectOf(slug),
      conversationOf: (owner) => messages.find(owner)?.conversation,
      onStarted: onRunStarted,
    }),
    machine.shell,
    ...machine.background,
    webFetch({ allow: () => config().webFetchAllow }),
    machine.files,
    machine.todo,
    github({ redactor, wrap: sandbox.wrap, program: () => programs.find("gh"), env, here: (cwd) => remoteOf(git, cwd) }),
    ...skillTools(skills),
    ...squadTools(squads, originOf),
    ...scheduleTools(schedules, originOf),
    configUpdate({ configPath: paths.config, onChange: onConfig }),
    checkUpdate({ version, registry: () => config().updateRegistry, env }),
  ];
}

/** A person's own words in a message, and those steered into its turn. */
function saidIn(message: Message | undefined): { text: string; conversation: string; source: Source }[] {
  if (!message) return [];
  const { conversation, source, text, steered } = message;
  return [text, ...steered.map((each) => each.text)].map((each) => ({ text: each, conversation, source }));
}

const SHARED_WITH_AGENTS = ["wiki_read", "wiki_write", "wiki_search", "wiki_list", "wiki_source"];

/** The tools of every agent of a squad. */
export function agentTools({ machine, store }: Core, memory: Memory): Tool[] {
  return [
    machine.shell,
    ...machine.background,
    machine.files,
    machine.todo,
    ...wikiTools(memory).filter(({ name }) => SHARED_WITH_AGENTS.includes(name)),
    conversationSearch(createMessageSearch(store)),
  ];
}
