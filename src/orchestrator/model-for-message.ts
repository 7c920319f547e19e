import type { Engine } from "../engine/port.ts";
import type { Config } from "../home/config.ts";
import { named } from "../lib/quoted.ts";
import type { Message } from "../protocol/messages.ts";
import { modelTierFor } from "../squads/complexity.ts";

export interface ModelForMessageDeps {
  engine: Pick<Engine, "models" | "modelFor" | "serving">;
  /** The model that a person chose for a conversation, or null. */
  modelOf: (conversation: string) => string | null;
  config: () => Pick<Config, "modelByDifficulty">;
}

/** The model chosen for one message, and why. */
export interface ChosenModel {
  model: string;
  reason: string;
}

/**
 * Chooses the model for a message: the one chosen for its conversation, else, if the user permits, the high tier for hard
 * messages and the low tier for easy ones, by the same rule as for tasks of squads. Undefined means the default model.
 */
export function createModelForMessage({ engine, modelOf, config }: ModelForMessageDeps) {
  async function chosenFor(conversation: string): Promise<ChosenModel | undefined> {
    const chosen = modelOf(conversation);
    if (chosen === null) return undefined;
    const { model, standsIn } = await engine.serving(chosen);
    const why = standsIn
      ? `stands in for ${named(chosen)}, which was chosen for this conversation and is not available`
      : undefined;
    return { model, reason: `model ${named(model)}: ${why ?? "chosen for this conversation"}` };
  }
  return async ({ conversation, source, text }: Pick<Message, "conversation" | "source" | "text">) => {
    const chosen = await chosenFor(conversation);
    if (chosen) return chosen;
    if (!config().modelByDifficulty || source.channel === "background") return undefined;
    const { tier, reason } = modelTierFor("medium", text);
    if (tier === "medium") return undefined;
    // The models are known only after they were listed; without a list the default model serves.
    await engine.models().catch(() => []);
    const { model, reason: why } = engine.modelFor(tier);
    return { model, reason: `model ${model}: ${reason}; ${why}` };
  };
}
export type ModelForMessage = (message: Message) => Promise<ChosenModel | undefined>;
