import type { Engine } from "../port.ts";
import type { ModelGateway } from "./gateway.ts";
import type { Choice } from "./ladder.ts";
import type { ModelList } from "./list.ts";

export interface AboutModelsDeps {
  choice: Choice;
  list: ModelList;
  door: Pick<ModelGateway, "window" | "windowFrom">;
  modelOf: (wanted: string | undefined) => string;
}

/** Answers the engine's questions about models. */
export function aboutModels({
  choice,
  list,
  door,
  modelOf,
}: AboutModelsDeps): Pick<Engine, "modelFor" | "serving" | "about" | "models"> {
  return {
    modelFor: (tier) => list.choice().forTier(tier),
    async serving(name) {
      await list.ready();
      const serving = list.choice().serving(name);
      return choice.kind === "rehearsal" ? { ...serving, rehearsal: true } : serving;
    },
    async about(name) {
      await list.ready(name);
      const model = modelOf(name);
      const { tools, chats } = list.available().find(({ id }) => id === model) ?? {};
      const known = { ...(tools !== undefined && { tools }), ...(chats !== undefined && { chats }) };
      return { model, window: door.window(model), windowFrom: door.windowFrom(model), ...known };
    },
    async models() {
      await list.ready();
      const known = list.available().map(({ id, name }) => ({ id, name }));
      return known.length > 0 ? known : [{ id: list.choice().model, name: list.choice().model }];
    },
  };
}
