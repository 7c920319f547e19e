import { type Ending, noTokens } from "./dialect.ts";
import { WireFailure } from "./failure.ts";

/** How one stream ended, in the words of its wire. */
export interface StreamEnd {
  /** Whether its provider said that it is over. */
  isWhole: boolean;
  /** Whether the model stopped in the middle of text, at its output limit. */
  atLimit: boolean;
  refusal: string | undefined;
}

export const FILTERED = "the provider's content filter stopped the answer";

/** What every wire keeps of an answer while it comes in: from one stream, and from those that continue it. */
export class Answer {
  text = "";
  model: string | undefined;
  tokens = noTokens();
  #streams = 0;
  #textBefore = "";

  /** Whether this stream continues an answer that an earlier one began. */
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

  /** What is known of the stream that comes in. */
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
