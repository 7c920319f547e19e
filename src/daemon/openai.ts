import type { Served } from "../channels/http/programs.ts";
import type { LiveConfig } from "../home/live-config.ts";
import { createConversationLog } from "../store/conversation-log.ts";
import { createOpenAiRequests } from "../store/openai-requests.ts";
import type { Rooms } from "./build.ts";
import type { Core } from "./core.ts";

export interface OpenAiLoaderDeps {
  core: Core;
  rooms: Rooms;
  settings: LiveConfig;
  /** The working folder of plain answers, which do nothing there. */
  folder: string;
}

/** Loads the API for OpenAI clients when the first of them connects. */
export function createOpenAiLoader({ core, rooms, settings, folder }: OpenAiLoaderDeps) {
  let loading: Promise<Served> | undefined;
  const load = async (isClosing: () => boolean): Promise<Served> => {
    const { createOpenAi } = await import("../channels/openai/app.ts");
    const { store, hub, events, approvals, engine, budgets, log } = core;
    const { inbox, messages } = rooms;
    return createOpenAi({
      ...{ store, inbox, messages, hub, events, approvals, isClosing, log },
      attachments: core.attachments,
      requests: createOpenAiRequests(store),
      talk: createConversationLog(store),
      light: { engine, spending: budgets, config: settings.current, folder },
    });
  };
  return (isClosing: () => boolean): Promise<Served> => {
    loading ??= load(isClosing);
    return loading;
  };
}
