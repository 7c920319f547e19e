import { Answer, FILTERED } from "./answer.ts";
import { createCalls } from "./calls.ts";
import type { Assembler, Ending } from "./dialect.ts";
import { listIn, numberIn, recordIn, textIn, textOfParts } from "./fields.ts";
import { createLetters, type StreamEvent, writeEvent } from "./stream.ts";
import { errorIn, parsed } from "./stream-errors.ts";
import { createThoughts } from "./thinking.ts";

/** Assembles an answer from the chunks of chat completions. */
export class CompletionsAnswer implements Assembler {
  readonly #answer = new Answer();
  readonly #letters = createLetters();
  readonly #calls = createCalls();
  #thoughts = createThoughts();
  /** Text held back at the end of a stream, sent with the next chunk. */
  #unsent = { thought: "", answer: "" };
  #head: Record<string, unknown> = { id: "answer", object: "chat.completion.chunk", created: 0, model: "" };
  #refusal = "";
  #finish: string | undefined;
  #isDone = false;
  #usageOfFirst: unknown;

  text(): string {
    return this.#answer.text;
  }

  soFar(): Pick<Ending, "model" | "tokens"> {
    return this.#answer.soFar();
  }

  isOver(): boolean {
    return this.#isDone;
  }

  take({ data }: StreamEvent): string[] {
    if (data === "[DONE]") {
      this.#isDone = true;
      return [];
    }
    const { choices, usage, error, ...rest } = parsed(data);
    if (error !== undefined && error !== null) throw errorIn({ error });
    this.#answer.served(rest.model);
    this.#head = { ...this.#head, ...rest };
    if (usage !== undefined && usage !== null) this.#count(usage);
    const choice = listIn(choices)
      .map(recordIn)
      .find(({ index }) => index === undefined || index === 0);
    return choice ? this.#takeChoice(choice) : [];
  }

  ended(): Ending {
    const isWhole = this.#finish !== undefined || this.#isDone;
    if (isWhole) {
      // A continuation may begin with thoughts of its own.
      this.#unsent = this.#thoughts.rest();
      this.#thoughts = createThoughts();
      this.#answer.text += this.#unsent.answer;
      if (this.#finish === "content_filter" && !this.#refusal) this.#refusal = FILTERED;
    }
    const atLimit = this.#finish === "length" && this.#calls.count() === 0;
    const ending = this.#answer.endStream({ isWhole, atLimit, refusal: this.#refusal || undefined });
    this.#finish = undefined;
    this.#isDone = false;
    return ending;
  }

  finish(remark = ""): string[] {
    const { thought, answer } = this.#unsent;
    const last = this.#letters.rest() + remark;
    this.#answer.text += last;
    const rest = this.#calls.rest();
    return [
      ...(thought ? [this.#chunk({ reasoning_content: thought })] : []),
      ...(answer + last ? [this.#chunk({ content: answer + last })] : []),
      ...(rest.length > 0 ? [this.#chunk({ tool_calls: rest })] : []),
      this.#chunk({}, this.#calls.count() > 0 ? "tool_calls" : "stop"),
      ...(this.#usageOfFirst ? [writeEvent({ ...this.#head, choices: [], usage: this.#usageOfFirst })] : []),
      "data: [DONE]\n\n",
    ];
  }

  #takeChoice(choice: Record<string, unknown>): string[] {
    if (typeof choice.finish_reason === "string") this.#finish = choice.finish_reason;
    const { content, refusal, tool_calls, finish_reason: _, ...others } = recordIn(choice.delta ?? choice.message);
    const declined = textIn(refusal);
    this.#refusal += declined;
    const said = this.#say(textOfParts(content) + declined);
    const calls = this.#calls.take(listIn(tool_calls));
    const delta = { ...others, ...said, ...(calls.length > 0 && { tool_calls: calls }) };
    return Object.keys(delta).length > 0 ? [this.#chunk(delta)] : [];
  }

  #say(piece: string): { content?: string; reasoning_content?: string } {
    const pushed = this.#thoughts.push(this.#letters.push(piece));
    this.#answer.text += pushed.answer;
    const thought = this.#unsent.thought + pushed.thought;
    const answer = this.#unsent.answer + pushed.answer;
    this.#unsent = { thought: "", answer: "" };
    return { ...(answer && { content: answer }), ...(thought && { reasoning_content: thought }) };
  }

  #count(usage: unknown): void {
    const { prompt_tokens, completion_tokens, prompt_tokens_details } = recordIn(usage);
    this.#answer.tokens = {
      input: numberIn(prompt_tokens),
      output: numberIn(completion_tokens),
      cached: numberIn(recordIn(prompt_tokens_details).cached_tokens),
    };
    // Some providers repeat a cumulative count with every chunk.
    if (!this.#answer.isContinued()) this.#usageOfFirst = usage;
  }

  #chunk(delta: object, reason: string | null = null): string {
    return writeEvent({ ...this.#head, choices: [{ index: 0, delta, finish_reason: reason }] });
  }
}
