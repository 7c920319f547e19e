import type { Choice } from "./ladder.ts";
import type { ModelDoor } from "./model-door.ts";
import type { ModelList } from "./model-list.ts";
import type { Engine } from "./port.ts";

export interface AboutModelsDeps {
  choice: Choice;
  list: ModelList;
  door: Pick<ModelDoor, "window" | "windowFrom">;
  modelOf: (wanted: string | undefined) => string;
}

/** The engine's answers to questions about models. */
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
      return choice.kind === "rehearsal" ? { model: name, standsIn: false } : list.choice().serving(name);
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
