import { z } from "zod";
import type { ModelConfig } from "../lib/config.ts";
import type { ModelFacts } from "./models.ts";
import type { WindowSource } from "./port.ts";
import type { ModelKnowledge } from "./wire/exchange.ts";

/** Small facts that outlive a restart, by name. */
export interface Memo {
  get(key: string): string | undefined;
  set(key: string, value: string): void;
}

export interface KnowledgeDeps {
  /** Whose models these are: what one provider refuses another may want. */
  provider: string;
  /** What a person says of the models counts before what the provider says. */
  configured: readonly ModelConfig[];
  listed: () => readonly ModelFacts[];
  memo: Memo;
}

const Learnt = z.object({
  changes: z
    .array(
      z.union([
        z.object({ without: z.string() }),
        z.object({ rename: z.string(), to: z.string() }),
        z.object({ cap: z.string(), at: z.number() }),
      ]),
    )
    .default([]),
  window: z.number().optional(),
});
type Learnt = z.infer<typeof Learnt>;

/** Windows of families whose providers do not list them. */
const USUAL: [RegExp, number][] = [
  [/claude/i, 200_000],
  [/gpt-4\.1|gemini/i, 1_000_000],
  [/gpt-5/i, 272_000],
  [/(?:^|\/)o\d/i, 200_000],
  [/gpt-3\.5/i, 16_385],
  [/gpt-4(?:-\d{4})?$/i, 8_192],
];
const ANY = 128_000;

export interface Knowledge extends ModelKnowledge {
  windowFrom(model: string): WindowSource;
}

/** What is known of each model of one provider, from the person, the provider's list, and its refusals. */
export function createKnowledge({ provider, configured, listed, memo }: KnowledgeDeps): Knowledge {
  const said = (model: string) => configured.find(({ id }) => id === model);
  const told = (model: string) => listed().find(({ id }) => id === model);
  const keyOf = (model: string) => `model:${provider}|${model}`;
  const cache = new Map<string, Learnt>();

  const learnt = (model: string): Learnt => {
    const known = cache.get(model) ?? read(memo.get(keyOf(model)));
    cache.set(model, known);
    return known;
  };
  const keep = (model: string, next: Learnt): void => {
    cache.set(model, next);
    memo.set(keyOf(model), JSON.stringify(next));
  };

  const found = (model: string): { window: number; from: WindowSource } => {
    const candidates: [WindowSource, number | undefined][] = [
      ["config", said(model)?.contextWindow],
      ["provider", told(model)?.window],
      ["name", USUAL.find(([name]) => name.test(model))?.[1]],
    ];
    const [from, window] = candidates.find(([, tokens]) => tokens !== undefined) ?? ["default", ANY];
    const refused = learnt(model).window;
    const known = { window: window ?? ANY, from };
    return refused !== undefined && refused < known.window ? { window: refused, from: "refusal" } : known;
  };

  return {
    window: (model) => found(model).window,
    windowFrom: (model) => found(model).from,
    learnWindow: (model, window) => keep(model, { ...learnt(model), window }),
    maxOutput: (model) => said(model)?.maxOutputTokens ?? Number.POSITIVE_INFINITY,
    reasons: (model) => said(model)?.reasoning ?? told(model)?.reasoning,
    hasTools: (model) => said(model)?.tools !== false,
    lessons: (model) => learnt(model).changes,
    learn: (model, change) => keep(model, { ...learnt(model), changes: [...learnt(model).changes, change] }),
  };
}

/** What was noted by another version, or by nobody, is learnt again. */
function read(text: string | undefined): Learnt {
  try {
    const noted = Learnt.safeParse(JSON.parse(text ?? "{}"));
    return noted.success ? noted.data : { changes: [] };
  } catch {
    return { changes: [] };
  }
}
