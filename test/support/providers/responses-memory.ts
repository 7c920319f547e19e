import type { Asked } from "./act.ts";
import { type Json, listOf, objectOf } from "./json.ts";
import { invalid } from "./openai-faults.ts";
import { type ModelRules, rulesFor } from "./openai-models.ts";
import type { Fault } from "./speak.ts";

/** What a responses API remembers of its answers: stored items, and the seals of its encrypted reasoning. */
export interface ResponsesMemory {
  /** Whether the model reasons for this request, which adds an item to its answer. */
  reasons(asked: Asked): boolean;
  /** Reasoning that only this server can decrypt. */
  seal(id: string): string;
  keep(asked: Asked, response: string, output: readonly Json[]): void;
  /** The error for items that falsely claim to come from this server. */
  fault(body: Json): Fault | undefined;
}

export function createResponsesMemory(models: Record<string, ModelRules>): ResponsesMemory {
  const seals = new Map<string, string>();
  const stored = new Set<string>();
  /** The reasoning item that preceded a call, by the id of the call's item. */
  const needs = new Map<string, string>();
  return {
    reasons: ({ model, body }) => {
      const rules = rulesFor(models, model);
      return (rules?.efforts.length ?? 0) > 0 && (objectOf(body.reasoning).effort ?? rules?.effort) !== "none";
    },
    seal: (id) => {
      const seal = `gAAAAAB${Buffer.from(`sealed reasoning of ${id}`).toString("base64url")}`;
      seals.set(seal, id);
      return seal;
    },
    keep: ({ body }, response, output) => {
      const reasoning = output.find(({ type }) => type === "reasoning");
      for (const { id, type } of output) if (reasoning && type === "function_call") needs.set(String(id), String(reasoning.id));
      if (body.store === false) return;
      for (const id of [response, ...output.map((item) => String(item.id))]) stored.add(id);
    },
    fault: (body) => itemsFault(body) ?? previousFault(body),
  };

  function itemsFault(body: Json): Fault | undefined {
    const items = listOf(body.input).map(objectOf);
    for (const [at, item] of items.entries()) {
      const id = item.id === undefined ? undefined : String(item.id);
      if (item.type === "item_reference" && !stored.has(String(id))) return notFound(String(id), body.store === false);
      if (item.type === "reasoning") {
        const fault = reasoningFault(item, String(id), body.store === false);
        if (fault) return fault;
        const next = items[at + 1]?.type;
        if (next === undefined && items[at + 1]?.role !== "assistant")
          return invalid(`Item '${id}' of type 'reasoning' was provided without its required following item.`, "input");
      }
      const needed = id === undefined ? undefined : needs.get(id);
      if (needed !== undefined && !items.slice(0, at).some((other) => other.id === needed))
        return invalid(
          `Item '${id}' of type 'function_call' was provided without its required 'reasoning' item: '${needed}'.`,
          "input",
        );
    }
    return undefined;
  }

  function reasoningFault(item: Json, id: string, unstored: boolean): Fault | undefined {
    const seal = item.encrypted_content;
    if (typeof seal !== "string") return stored.has(id) ? undefined : notFound(id, unstored);
    if (seals.get(seal) === id || (item.id === undefined && seals.has(seal))) return undefined;
    return invalid(
      `The encrypted content ${seal.slice(0, 4)}...${seal.slice(-4)} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
      null,
      "invalid_encrypted_content",
    );
  }

  function previousFault({ previous_response_id: id }: Json): Fault | undefined {
    if (id == null || stored.has(String(id))) return undefined;
    return invalid(`Previous response with id '${id}' not found.`, "previous_response_id", "previous_response_not_found");
  }
}

function notFound(id: string, unstored: boolean): Fault {
  const why =
    " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.";
  return { ...invalid(`Item with id '${id}' not found.${unstored ? why : ""}`, "input"), status: 404 };
}
