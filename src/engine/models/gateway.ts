import type { CopilotRequestHandler } from "@github/copilot-sdk";
import type { Log } from "../../lib/log.ts";
import { createContext } from "../wire/context.ts";
import { createExchanger } from "../wire/exchange.ts";
import { ModelHandler } from "../wire/handler.ts";
import type { Handover } from "../wire/handover.ts";
import type { Observer } from "../wire/observer.ts";
import type { PictureOf } from "../wire/pictures.ts";
import { createKnowledge, type Memo } from "./knowledge.ts";
import type { Choice } from "./ladder.ts";
import type { ModelList } from "./list.ts";
import { endpointOf } from "./provider.ts";

export interface ModelGatewayDeps {
  choice: Choice;
  list: ModelList;
  /** The pictures that a session's texts refer to. */
  pictureOf: PictureOf;
  memo: Memo;
  log: Log;
}

const NOBODY: Observer = { alive() {}, served() {}, refused() {}, failed() {}, called() {} };

/** Everything between the runtime and a model, built from the chosen provider. */
export function createModelGateway({ choice, list, pictureOf, memo, log }: ModelGatewayDeps) {
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
    exchanger: createExchanger({
      ...{ transport, context, knowledge, pictureOf, log },
      rehearsal: kind === "rehearsal",
    }),
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
    /** Subscribes to the model calls of a runtime session. */
    watch(session: string, observer: Observer): () => void {
      watchers.set(session, observer);
      return () => {
        if (watchers.get(session) === observer) watchers.delete(session);
      };
    },
    inherit: context.inherit,
    /** What is left of a shortened conversation; can be taken once. */
    handover(session: string): Handover | undefined {
      const earlier = context.handover(session);
      context.forget(session);
      return earlier;
    },
  };
}
export type ModelGateway = ReturnType<typeof createModelGateway>;
