import { Answer } from "./answer.ts";
import type { Assembler, Ending } from "./dialect.ts";
import { numberIn, recordIn, textIn } from "./fields.ts";
import { createLetters, type Letters, type StreamEvent, writeEvent } from "./stream.ts";
import { errorIn, parsed } from "./stream-errors.ts";

interface Block {
  index: number;
  type: string;
  letters: Letters;
  /** The latest piece; its shape is reused for what is left at the end. */
  latest: Record<string, unknown>;
}

type Event = Record<string, unknown>;

/** The field that holds the text in each kind of piece. */
const TEXT_OF: Record<string, string> = { text_delta: "text", thinking_delta: "thinking", input_json_delta: "partial_json" };

/** Assembles an answer from the events of Anthropic's messages. */
export class MessagesAnswer implements Assembler {
  readonly #answer = new Answer();
  /** This stream's blocks by the provider's number; undefined for one that is left out. */
  #blocks = new Map<number, Block | undefined>();
  #next = 0;
  /** A text block stays open until something follows it, since a later stream may continue it. */
  #open: Block | undefined;
  #calls = 0;
  #stop: string | undefined;
  #isOver = false;
  /** The event that ended the first stream, with its usage. */
  #closing: Event | undefined;

  text(): string {
    return this.#answer.text;
  }

  soFar(): Pick<Ending, "model" | "tokens"> {
    return this.#answer.soFar();
  }

  isOver(): boolean {
    return this.#isOver;
  }

  take({ data }: StreamEvent): string[] {
    const event = parsed(data);
    switch (event.type) {
      case "error":
        throw errorIn(event);
      case "message_start":
        return this.#start(event);
      case "content_block_start":
        return this.#startBlock(event);
      case "content_block_delta":
        return this.#addToBlock(event);
      case "content_block_stop":
        return this.#stopBlock(event);
      case "message_delta":
        this.#noteEnding(event);
        return [];
      case "message_stop":
        this.#isOver = true;
        return [];
      default:
        return this.#answer.isContinued() ? [] : [writeEvent(event, textIn(event.type) || undefined)];
    }
  }

  ended(): Ending {
    const isWhole = this.#stop !== undefined || this.#isOver;
    const atLimit = this.#stop === "max_tokens" && this.#open !== undefined;
    const refusal = this.#stop === "refusal" ? this.#answer.latest() || "the model declined to answer" : undefined;
    const ending = this.#answer.endStream({ isWhole, atLimit, refusal });
    this.#blocks = new Map();
    this.#stop = undefined;
    this.#isOver = false;
    return ending;
  }

  finish(remark = ""): string[] {
    const { delta, ...rest } = this.#closing ?? { usage: { output_tokens: 0 } };
    const reason = this.#calls > 0 ? "tool_use" : "end_turn";
    return [
      ...(remark ? this.#remark(remark) : []),
      ...this.#close(),
      send({ ...rest, type: "message_delta", delta: { ...recordIn(delta), stop_reason: reason } }),
      send({ type: "message_stop" }),
    ];
  }

  #start(event: Event): string[] {
    const { usage, model } = recordIn(event.message);
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = recordIn(usage);
    const cached = numberIn(cache_read_input_tokens);
    this.#answer.tokens = {
      input: numberIn(input_tokens) + cached + numberIn(cache_creation_input_tokens),
      output: numberIn(output_tokens),
      cached,
    };
    this.#answer.served(model);
    return this.#answer.isContinued() ? [] : [writeEvent(event, "message_start")];
  }

  #startBlock(event: Event): string[] {
    const number = numberIn(event.index);
    const type = textIn(recordIn(event.content_block).type);
    const isContinued = this.#answer.isContinued();
    if (isContinued && type === "text" && this.#open) {
      this.#blocks.set(number, this.#open);
      return [];
    }
    // Thoughts about continuing are not part of the answer.
    if (isContinued && type.includes("thinking")) {
      this.#blocks.set(number, undefined);
      return [];
    }
    const before = this.#close();
    const block = this.#begin(type);
    this.#blocks.set(number, block);
    if (type === "tool_use") this.#calls += 1;
    return [...before, send({ ...event, type: "content_block_start", index: block.index })];
  }

  #addToBlock(event: Event): string[] {
    const block = this.#blocks.get(numberIn(event.index));
    if (!block) return [];
    const delta = recordIn(event.delta);
    const field = TEXT_OF[textIn(delta.type)];
    if (!field) return [send({ ...event, type: "content_block_delta", index: block.index })];
    block.latest = delta;
    const said = block.letters.push(textIn(delta[field]));
    if (field === "text") this.#answer.text += said;
    return said ? [send({ type: "content_block_delta", index: block.index, delta: { ...delta, [field]: said } })] : [];
  }

  #stopBlock(event: Event): string[] {
    const block = this.#blocks.get(numberIn(event.index));
    if (!block) return [];
    if (block.type !== "text") return endOf(block);
    this.#open = block;
    return [];
  }

  #noteEnding(event: Event): void {
    const { stop_reason } = recordIn(event.delta);
    if (typeof stop_reason === "string") this.#stop = stop_reason;
    const { tokens } = this.#answer;
    tokens.output = numberIn(recordIn(event.usage).output_tokens) || tokens.output;
    this.#closing ??= event;
  }

  #remark(remark: string): string[] {
    const isOpen = this.#open !== undefined;
    this.#open ??= this.#begin("text");
    const { index } = this.#open;
    this.#answer.text += remark;
    return [
      ...(isOpen ? [] : [send({ type: "content_block_start", index, content_block: { type: "text", text: "" } })]),
      send({ type: "content_block_delta", index, delta: { type: "text_delta", text: remark } }),
    ];
  }

  #begin(type: string): Block {
    const block = { index: this.#next, type, letters: createLetters(), latest: { type: "text_delta" } };
    this.#next += 1;
    return block;
  }

  #close(): string[] {
    const block = this.#open;
    this.#open = undefined;
    return block ? endOf(block) : [];
  }
}

function endOf({ index, letters, latest }: Block): string[] {
  const rest = letters.rest();
  const field = TEXT_OF[textIn(latest.type)] ?? "text";
  return [
    ...(rest ? [send({ type: "content_block_delta", index, delta: { ...latest, [field]: rest } })] : []),
    send({ type: "content_block_stop", index }),
  ];
}

function send(data: { type: string } & Event): string {
  return writeEvent(data, data.type);
}
