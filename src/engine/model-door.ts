import type { CopilotRequestHandler } from "@github/copilot-sdk";
import type { Log } from "../lib/log.ts";
import { createKnowledge, type Memo } from "./knowledge.ts";
import type { Choice } from "./ladder.ts";
import type { ModelList } from "./model-list.ts";
import { endpointOf } from "./provider.ts";
import { createContext } from "./wire/context.ts";
import { createExchanger } from "./wire/exchange.ts";
import { ModelHandler } from "./wire/handler.ts";
import type { Observer } from "./wire/observer.ts";

export interface ModelDoorDeps {
  choice: Choice;
  list: ModelList;
  memo: Memo;
  log: Log;
}

const NOBODY: Observer = { alive() {}, served() {}, refused() {}, failed() {}, called() {} };

/** Everything between the runtime and a model, built from what was chosen. */
export function createModelDoor({ choice, list, memo, log }: ModelDoorDeps) {
  const { provider, kind } = choice;
  const endpoint = provider && endpointOf(provider);
  const knowledge = createKnowledge({
    provider: endpoint?.origin ?? kind,
    configured: provider?.models ?? [],
    listed: list.available,
    memo,
  });
  const context = createContext({ log });
  const watchers = new Map<string, Observer>();
  const { transport } = list;
  const handler: CopilotRequestHandler = new ModelHandler({
    exchanger: createExchanger({ transport, context, knowledge, rehearsal: kind === "rehearsal", log }),
    transport,
    address:
      kind === "copilot"
        ? undefined
        : (wire, model) => ({ url: endpoint?.ask(wire, model) ?? "rehearsal:", headers: endpoint?.headers ?? {} }),
    observerOf: (session) => watchers.get(session) ?? NOBODY,
    log,
  });
  return {
    handler,
    window: (model: string) => knowledge.window(model),
    windowFrom: (model: string) => knowledge.windowFrom(model),
    /** Follows the calls of one of the runtime's sessions until told to stop. */
    watch(session: string, observer: Observer): () => void {
      watchers.set(session, observer);
      return () => {
        if (watchers.get(session) === observer) watchers.delete(session);
      };
    },
    /** What is left of a conversation that had to be shortened; asked for once. */
    handover(session: string): string | undefined {
      const earlier = context.handover(session);
      context.forget(session);
      return earlier;
    },
  };
}
export type ModelDoor = ReturnType<typeof createModelDoor>;
