import { dirname } from "node:path";
import { createTelegram, type Telegram } from "../channels/telegram/switch.ts";
import type { LiveConfig } from "../home/live-config.ts";
import type { Paths } from "../home/paths.ts";
import { projectEnvironment } from "../process/environment.ts";
import { exec } from "../process/exec.ts";
import type { Status, Stopped } from "../protocol/api.ts";
import type { Source } from "../protocol/messages.ts";
import type { Rooms } from "./build.ts";
import type { Core } from "./core.ts";

export interface BuildTelegramDeps {
  core: Core;
  rooms: Rooms;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  settings: LiveConfig;
  status: () => Status;
  stopAll: () => Stopped;
}

const TRANSCRIBE_MS = 300_000;

/** The Telegram channel on top of the rooms. */
export function buildTelegram({ core, rooms, env, paths, settings, status, stopAll }: BuildTelegramDeps): Telegram {
  const { store, hub, approvals, log, redactor } = core;
  const { inbox, steering, messages, changes, squads, swarm, askers, news, pageReviews, wiki, pulls } = rooms;
  const askerOf = (ownerId: string): Source | undefined => {
    if (ownerId.startsWith("m_")) return askers.ofMessage(ownerId);
    if (ownerId.startsWith("r_")) return askers.ofRun(ownerId);
    return ownerId.startsWith("t_") ? squads.task(ownerId).origin?.source : undefined;
  };
  return createTelegram({
    ...{ settings, env, store, hub, inbox, steering, messages, changes, approvals, squads, swarm, status, stopAll, askerOf, log },
    ...{ pageReviews, wiki, pulls },
    goesOut: news.goesOutFor,
    addressOf: askers.ofMessage,
    filesFolder: paths.files,
    adopt: core.attachments.adopt,
    transcriber: (command) => (file) => transcribe(typeof command === "string" ? wordsIn(command) : command, file),
  });

  async function transcribe([program = "", ...given]: readonly string[], file: string): Promise<string> {
    const args = given.some((each) => each.includes("{file}"))
      ? given.map((each) => each.replaceAll("{file}", file))
      : [...given, file];
    const options = { cwd: dirname(file), env: projectEnvironment(env, redactor), deadlineMs: TRANSCRIBE_MS };
    const { code, stdout, output } = await exec(program, args, options);
    if (code !== 0) throw failed(`${program} ended with ${code}: ${output.slice(-300)}`);
    return stdout;
  }

  function failed(why: string): Error {
    log.warn("the transcriber failed", { why: redactor.clean(why) });
    return new Error(why);
  }
}

/** The words of a command line; quotes keep words together, and nothing else is special. */
function wordsIn(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? "");
}
