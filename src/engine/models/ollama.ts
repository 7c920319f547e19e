import { z } from "zod";
import type { Transport } from "../wire/transport.ts";
import { fetchJson, type ModelFacts } from "./models.ts";

const Tags = z.looseObject({ models: z.array(z.looseObject({ name: z.string() })) });
const Shown = z.looseObject({
  capabilities: z.array(z.string()).optional(),
  parameters: z.string().optional(),
  model_info: z.record(z.string(), z.unknown()).optional(),
});
const Loaded = z.looseObject({
  models: z.array(z.looseObject({ name: z.string(), model: z.string().optional(), context_length: z.number().optional() })),
});

/** Ollama's default context window. Ollama truncates longer prompts without an error. */
const DEFAULT_WINDOW = 4_096;

/** A client for Ollama's own API, which tells more about its models than the OpenAI-compatible list. */
export function createOllama(url: string, transport: Transport, headers: Record<string, string> = {}) {
  const ask = (path: string, post?: object) =>
    fetchJson(new URL(path, url).href, { "content-type": "application/json", ...headers }, transport, post);

  return {
    /** The names of its models; undefined if no Ollama answers there. */
    async names(): Promise<string[] | undefined> {
      const tags = Tags.safeParse(await ask("/api/tags"));
      return tags.success ? tags.data.models.map(({ name }) => name) : undefined;
    },
    async facts(id: string): Promise<ModelFacts> {
      const shown = Shown.safeParse(await ask("/api/show", { model: id }));
      if (!shown.success) return { id, name: id, window: DEFAULT_WINDOW };
      const { capabilities, parameters, model_info } = shown.data;
      const most = Object.entries(model_info ?? {}).find(([key]) => key.endsWith(".context_length"))?.[1];
      const set = Number(/^num_ctx\s+(\d+)/m.exec(parameters ?? "")?.[1]) || DEFAULT_WINDOW;
      return {
        id,
        name: id,
        window: typeof most === "number" && most > 0 ? Math.min(most, set) : set,
        ...(capabilities && {
          tools: capabilities.includes("tools"),
          vision: capabilities.includes("vision"),
          chats: capabilities.includes("completion") || !capabilities.includes("embedding"),
        }),
      };
    },
    /** The windows of the models that are loaded now. */
    async loaded(): Promise<Map<string, number>> {
      const loaded = Loaded.safeParse(await ask("/api/ps"));
      const models = loaded.success ? loaded.data.models : [];
      return new Map(models.flatMap(({ name, context_length }) => (context_length ? [[name, context_length] as const] : [])));
    },
  };
}
export type Ollama = ReturnType<typeof createOllama>;
