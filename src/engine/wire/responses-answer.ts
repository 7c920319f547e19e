import { Answer, FILTERED } from "./answer.ts";
import type { Assembler, Ending } from "./dialect.ts";
import { readRefusal, type WireFailure } from "./failure.ts";
import { numberIn, recordIn, textIn } from "./fields.ts";
import { createLetters, type Letters, type StreamEvent, writeEvent } from "./stream.ts";
import { errorIn, parsed } from "./stream-errors.ts";

/** The position of an answer's text, so that a later stream can continue there. */
interface OutputPosition {
  item_id: string;
  output_index: number;
  content_index: number;
}

type Event = Record<string, unknown>;

/** Assembles an answer from the events of OpenAI's responses. */
export class ResponsesAnswer implements Assembler {
  readonly #answer = new Answer();
  readonly #letters = createLetters();
  /** Unpaired surrogates of arguments and reasoning, by event and index. */
  readonly #others = new Map<string, Letters>();
  readonly #items = new Map<number, Event>();
  #place: OutputPosition | undefined;
  /** The text of the current message. */
  #own = "";
  /** Added to a later stream's indexes, so that they follow those of earlier streams. */
  #offset = 0;
  #highest = -1;
  #calls = 0;
  #refusal = "";
  #last: Event | undefined;
  #first: Event | undefined;
  #sequence = 0;

  text(): string {
    return this.#answer.text;
  }

  soFar(): Pick<Ending, "model" | "tokens"> {
    return this.#answer.soFar();
  }

  isOver(): boolean {
    return this.#last !== undefined;
  }

  take({ data, event: name }: StreamEvent): string[] {
    const event = parsed(data);
    const type = textIn(event.type) || name || "";
    const index = numberIn(event.output_index) + this.#offset;
    const moved = { ...event, output_index: index };
    switch (type) {
      case "error":
        throw errorIn(event.error === undefined ? { error: event } : event);
      case "response.failed":
        throw failureOf(recordIn(event.response));
      case "response.created":
      case "response.in_progress":
      case "response.queued":
        this.#answer.served(recordIn(event.response).model);
        return this.#answer.isContinued() ? [] : [this.#send(type, event)];
      case "response.completed":
      case "response.incomplete":
        this.#last = recordIn(event.response);
        this.#first ??= this.#last;
        this.#answer.served(this.#last.model);
        return [];
      case "response.output_item.added":
        return this.#addItem(moved, index);
      case "response.content_part.added": {
        const part = { type: "output_text", text: "", annotations: [] };
        return this.#answer.isContinued() ? [] : [this.#send(type, { ...moved, part })];
      }
      case "response.refusal.delta":
      case "response.output_text.delta": {
        const piece = textIn(event.delta);
        if (type === "response.refusal.delta") this.#refusal += piece;
        this.#place ??= { item_id: textIn(event.item_id), output_index: index, content_index: numberIn(event.content_index) };
        return this.#say(this.#letters.push(piece));
      }
      // The end of a text is sent once the text is complete.
      case "response.output_text.done":
      case "response.refusal.done":
      case "response.content_part.done":
        return [];
      case "response.output_item.done":
        return this.#endItem(moved, index);
      default:
        return this.#passOn(type, event, moved);
    }
  }

  ended(): Ending {
    const last = this.#last;
    if (last?.status === "failed" || last?.status === "cancelled") throw failureOf(last);
    const reason = textIn(recordIn(last?.incomplete_details).reason);
    if (reason === "content_filter" && !this.#refusal) this.#refusal = FILTERED;
    const usage = recordIn(last?.usage);
    this.#answer.tokens = {
      input: numberIn(usage.input_tokens),
      output: numberIn(usage.output_tokens),
      cached: numberIn(recordIn(usage.input_tokens_details).cached_tokens),
    };
    const ending = this.#answer.endStream({
      isWhole: last !== undefined,
      atLimit: last?.status === "incomplete" && reason !== "content_filter" && this.#calls === 0,
      refusal: this.#refusal || undefined,
    });
    this.#last = undefined;
    this.#offset = this.#highest + 1;
    return ending;
  }

  finish(remark = ""): string[] {
    const before = [...this.#say(this.#letters.rest() + remark), ...this.#close()];
    const { incomplete_details: _, ...response } = this.#first ?? {};
    const output = [...this.#items].sort(([a], [b]) => a - b).map(([, item]) => item);
    const whole = { ...response, status: "completed", incomplete_details: null, output };
    return [...before, this.#send("response.completed", { response: whole })];
  }

  #addItem(event: Event, index: number): string[] {
    const item = recordIn(event.item);
    this.#highest = Math.max(this.#highest, index);
    if (item.type === "function_call") this.#calls += 1;
    const isContinued = this.#answer.isContinued();
    if (item.type === "message" && isContinued && this.#place) return [];
    if (item.type === "reasoning" && isContinued) return [];
    if (item.type !== "message") return [this.#send("response.output_item.added", event)];
    const before = [...this.#say(this.#letters.rest()), ...this.#close()];
    this.#place = { item_id: textIn(item.id), output_index: index, content_index: 0 };
    return [...before, this.#send("response.output_item.added", event)];
  }

  #endItem(event: Event, index: number): string[] {
    const item = recordIn(event.item);
    const isContinued = this.#answer.isContinued();
    if (item.type === "message") {
      const at = this.#place?.output_index;
      if (at !== undefined) this.#items.set(at, isContinued ? (this.#items.get(at) ?? item) : item);
      return [];
    }
    if (item.type === "reasoning" && isContinued) return [];
    this.#items.set(index, item);
    return [this.#send("response.output_item.done", event)];
  }

  #passOn(type: string, event: Event, moved: Event): string[] {
    if (this.#answer.isContinued() && type.startsWith("response.reasoning")) return [];
    if (event.output_index === undefined) return [this.#send(type, event)];
    if (typeof event.delta !== "string") return [this.#send(type, moved)];
    const key = `${type} ${moved.output_index}`;
    const letters = this.#others.get(key) ?? createLetters();
    this.#others.set(key, letters);
    const delta = letters.push(event.delta);
    return delta ? [this.#send(type, { ...moved, delta })] : [];
  }

  #say(piece: string): string[] {
    this.#answer.text += piece;
    this.#own += piece;
    return piece && this.#place ? [this.#send("response.output_text.delta", { ...this.#place, delta: piece, logprobs: [] })] : [];
  }

  /** Ends the current message. The provider's own end was held back, because a later stream may continue the message. */
  #close(): string[] {
    const place = this.#place;
    if (!place) return [];
    const part = { type: "output_text", text: this.#own, annotations: [] };
    const item = {
      ...(this.#items.get(place.output_index) ?? { id: place.item_id, type: "message", role: "assistant" }),
      status: "completed",
      content: [part],
    };
    this.#items.set(place.output_index, item);
    const lines = [
      this.#send("response.output_text.done", { ...place, text: this.#own, logprobs: [] }),
      this.#send("response.content_part.done", { ...place, part }),
      this.#send("response.output_item.done", { output_index: place.output_index, item }),
    ];
    this.#place = undefined;
    this.#own = "";
    return lines;
  }

  #send(type: string, data: Event): string {
    const line = writeEvent({ ...data, type, sequence_number: this.#sequence }, type);
    this.#sequence += 1;
    return line;
  }
}

function failureOf(response: Event): WireFailure {
  const error = recordIn(response.error);
  if (error.message === undefined) return readRefusal(502, JSON.stringify({ error: "the response failed, without a reason" }));
  return errorIn({ error });
}
