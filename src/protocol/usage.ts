import { z } from "zod";

/** What model calls cost, added up. */
export const Usage = z.object({
  calls: z.number().int(),
  inputTokens: z.number().int(),
  outputTokens: z.number().int(),
  cacheReadTokens: z.number().int(),
});
export type Usage = z.infer<typeof Usage>;

/** One model call, as the runtime reported it. */
export interface ModelCall {
  model: string;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  durationMs: number;
}

export const noUsage = (): Usage => ({ calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0 });

export function addCall(usage: Usage, call: ModelCall): Usage {
  return {
    calls: usage.calls + 1,
    inputTokens: usage.inputTokens + call.inputTokens,
    outputTokens: usage.outputTokens + call.outputTokens,
    cacheReadTokens: usage.cacheReadTokens + call.cacheReadTokens,
  };
}
