import { z } from "zod";
import type { ModelConfig } from "../../home/config.ts";
import type { WindowSource } from "../port.ts";
import type { ModelKnowledge } from "../wire/exchange.ts";
import type { ModelFacts } from "./models.ts";

/** Small facts by name that survive a restart. */
export interface Memo {
  get(key: string): string | undefined;
  set(key: string, value: string): void;
}

export interface KnowledgeDeps {
  /** Identifies the provider, since each refuses different things. */
  provider: string;
  /** The user's facts, which override the provider's. */
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

/** Windows of model families that providers do not list. */
const USUAL: [RegExp, number][] = [
  [/claude/i, 200_000],
  [/gpt-4\.1|gemini/i, 1_000_000],
  [/gpt-5/i, 272_000],
  [/(?:^|\/)o\d/i, 200_000],
  [/gpt-3\.5/i, 16_385],
  [/gpt-4(?:-\d{4})?$/i, 8_192],
];
const ANY = 128_000;

/** Families that support pictures, if neither the user nor the provider says so. */
const SEEING = [
  /claude(?!-(?:1|2|instant))/i,
  /gpt-4o|gpt-4\.\d|gpt-4-(?:turbo|vision)|gpt-[5-9]/i,
  /(?:^|\/)(?:o1|o3|o4)(?!-mini)|(?:^|\/)o4-mini/i,
  /gemini|grok-[4-9]|gemma-?3|llama-?4|llava|moondream|minicpm-v|pixtral|vision/i,
  /(?:^|[^a-z])(?:[a-z]+[\d.]{0,5})?-?vl(?:$|[^a-z])/i,
];

export interface Knowledge extends ModelKnowledge {
  windowFrom(model: string): WindowSource;
}

/** What is known of each model of a provider: from the user, from the provider's list and from its refusals. */
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
    sees: (model) => said(model)?.vision ?? told(model)?.vision ?? SEEING.some((name) => name.test(model)),
    lessons: (model) => learnt(model).changes,
    learn: (model, change) => keep(model, { ...learnt(model), changes: [...learnt(model).changes, change] }),
  };
}

/** Facts stored in another version's format are dropped and learnt again. */
function read(text: string | undefined): Learnt {
  try {
    const noted = Learnt.safeParse(JSON.parse(text ?? "{}"));
    return noted.success ? noted.data : { changes: [] };
  } catch {
    return { changes: [] };
  }
}
