import { type Ending, noTokens } from "./dialect.ts";
import { WireFailure } from "./failure.ts";

/** How one stream ended, in its wire's words. */
export interface StreamEnd {
  /** Whether its provider ended it. */
  isWhole: boolean;
  /** Whether the model stopped in the middle of text, at its output limit. */
  atLimit: boolean;
  refusal: string | undefined;
}

export const FILTERED = "the provider's content filter stopped the answer";

/** The state that every wire keeps of an incoming answer, over its first stream and continuations. */
export class Answer {
  text = "";
  model: string | undefined;
  tokens = noTokens();
  #streams = 0;
  #textBefore = "";

  /** Whether this stream continues an earlier one's answer. */
  isContinued(): boolean {
    return this.#streams > 0;
  }

  /** The text of this stream alone. */
  latest(): string {
    return this.text.slice(this.#textBefore.length);
  }

  served(model: unknown): void {
    if (typeof model === "string" && model) this.model = model;
  }

  /** The metadata of the current stream. */
  soFar(): Pick<Ending, "model" | "tokens"> {
    return { model: this.model, tokens: this.tokens };
  }

  /** Ends one stream. Throws a `WireFailure` if it broke off. */
  endStream({ isWhole, atLimit, refusal }: StreamEnd): Ending {
    if (!isWhole) throw new WireFailure("the answer broke off before its end", { status: 502, fault: "network" });
    const cut = atLimit && this.text !== this.#textBefore;
    const ending = { cut, refusal, model: this.model, tokens: this.tokens };
    this.#streams += 1;
    this.#textBefore = this.text;
    this.tokens = noTokens();
    return ending;
  }
}
