import { estimateTokens } from "../../lib/estimate-tokens.ts";
import type { Body } from "./dialect.ts";

/** Estimates the tokens of requests, corrected by each provider's earlier counts. */
export function createTokenCount() {
  /** How many tokens a model counts for one of our estimate. */
  const factors = new Map<string, number>();
  const factorOf = (model: string) => factors.get(model) ?? 1;

  const costOf = (model: string, value: unknown): number =>
    Math.ceil(estimateTokens(typeof value === "string" ? value : JSON.stringify(value)) * factorOf(model));

  return {
    costOf,
    /** Most requests are so far below the limit that their length proves it. */
    fits(body: Body, limit: number): boolean {
      const text = JSON.stringify(body);
      return text.length * factorOf(body.model) <= limit || costOf(body.model, text) <= limit;
    },
    /** Learns from the provider's own count of a request. */
    counted(model: string, body: Body, tokens: number): void {
      const estimate = estimateTokens(JSON.stringify(body));
      if (tokens > 0 && estimate > 200) factors.set(model, Math.min(3, Math.max(factorOf(model), tokens / estimate)));
    },
  };
}
