import { callSummary } from "../../protocol/call-summary.ts";
import type { Event, EventData } from "../../protocol/events.ts";
import type { Message } from "../../protocol/messages.ts";
import { formatRetry, stateAtTheEnd } from "../../protocol/shown-state.ts";
import { withoutAttachments } from "../attach.ts";
import { createMarkdown, type MarkdownStream } from "../markdown/stream.ts";
import type { Line } from "../text/style.ts";
import { type Block, joined, markdownBlock, noteBlock, proseWidth, steerBlock, troubleBlock, userBlock } from "./blocks.ts";
import { type JournalCall, type ToolCall, toolLines } from "./tools.ts";

type Part =
  | { kind: "block"; block: Block }
  | { kind: "markdown"; stream: MarkdownStream; isBegun: boolean; isEnded: boolean }
  | { kind: "tools"; calls: ToolCall[]; isEnded: boolean };

/** A queued message. */
export interface Waiting {
  id: string;
  text: string;
  source: string;
}

/** The running turn. */
export interface Turn {
  id: string;
  startedAt: number;
  /** When its last event arrived. */
  heardAt: number;
}

/** How many lines of Markdown are processed per frame, so that no frame takes long. */
const AT_ONCE = 40;
/** How many characters of a call's output are kept for display. */
const MOST_OUTPUT = 4_000;

export interface TranscriptDeps {
  links: boolean;
  now: () => number;
}

/**
 * A conversation as it is printed: finished lines are returned once, in order, and the work in progress is shown below them.
 */
export class Transcript {
  readonly #links: boolean;
  readonly #now: () => number;
  readonly #parts: Part[] = [];
  /** Blocks that wait until printing them interrupts no paragraph. */
  readonly #calm: Block[] = [];
  readonly #waiting = new Map<string, Waiting>();
  readonly #over = new Set<string>();
  readonly #sources = new Map<string, Message["source"]>();
  readonly #files = new Map<string, string[]>();
  /** How often each message has called each tool. */
  readonly #ordinals = new Map<string, number>();
  #turn: Turn | undefined;
  #last: "nothing" | "tools" | "other" = "nothing";
  #lastCall: ToolCall | undefined;
  #lastReply = "";
  #spoken = "";

  constructor({ links, now }: TranscriptDeps) {
    this.#links = links;
    this.#now = now;
  }

  get turn(): Turn | undefined {
    return this.#turn;
  }
  get waiting(): Waiting[] {
    return [...this.#waiting.values()];
  }
  get lastCall(): ToolCall | undefined {
    return this.#lastCall;
  }
  get lastReply(): string {
    return this.#lastReply;
  }

  hear(event: Event): void {
    switch (event.type) {
      case "message.queued":
        return void this.#queue(event.data);
      case "message.started":
        if (!this.#over.has(event.data.id)) this.#begin(event.data.id, this.#waiting.get(event.data.id)?.text ?? "");
        return;
      case "message.delta":
        return void this.#delta(event.data);
      case "message.tool":
        if (this.#hears(event.data.id)) this.#tool(event.data);
        return;
      case "message.retried":
        if (this.#hears(event.data.id)) this.calmly(noteBlock(formatRetry(event.data)));
        return;
      case "message.steered":
        if (this.#hears(event.data.id)) this.calmly(steerBlock(event.data.text));
        return;
      case "message.finished":
        return void this.#finish(event.data);
    }
  }

  /** Adds an earlier turn from the store. */
  recall(message: Message): void {
    const { id, text, source, status, finishedAt } = message;
    this.#sources.set(id, source);
    this.#files.set(id, namesOf(message));
    if (status === "queued") return void this.#queue(message);
    if (this.#over.has(id)) return;
    if (finishedAt === null) return void this.#begin(id, text);
    this.#over.add(id);
    this.#begin(id, text);
    for (const each of message.steered) this.print(steerBlock(each.text));
    this.#end(message);
  }

  /** Prints at once, above the work in progress. */
  print(block: Block): void {
    const at = this.#parts.findIndex((part) => part.kind !== "block" && !part.isEnded);
    const live = this.#parts[at];
    // Text that continues below the block starts with a gap.
    if (live?.kind === "markdown" && live.stream.isInside()) live.isBegun = false;
    this.#parts.splice(at < 0 ? this.#parts.length : at, 0, { kind: "block", block });
  }

  /** Prints as soon as that interrupts no paragraph. */
  calmly(block: Block): void {
    if (this.#isTorn()) this.#calm.push(block);
    else this.print(block);
  }

  /** Shows a call's result: below the call if it can still change, otherwise as a new block. */
  unfold(call: ToolCall, found: JournalCall): void {
    const result = found.result ?? "(no result yet)";
    call.what ??= callSummary(found.tool, found.args);
    if (!this.#calls().includes(call)) return void this.print((width) => toolLines({ ...call, result }, width, this.#now()));
    if (call.result === undefined) call.result = result;
    else delete call.result;
  }

  /** Returns the finished lines, each once. */
  take(width: number): Line[] {
    const out: Line[] = [];
    if (!this.#isTorn()) this.#flushCalm();
    for (let part = this.#parts[0]; part !== undefined; part = this.#parts[0]) {
      if (part.kind === "tools" && !part.isEnded) break;
      const lines = this.#finished(part, width);
      const isGoingOn = part.kind === "markdown" && part.isBegun;
      if (lines.length > 0 && !isGoingOn) this.#gap(out, part.kind === "tools" ? "tools" : "other");
      if (lines.length > 0 && part.kind === "markdown") part.isBegun = true;
      out.push(...lines);
      if (part.kind === "markdown" && (!part.isEnded || part.stream.isBehind())) break;
      this.#parts.shift();
    }
    return this.#calm.length > 0 && !this.#isTorn() ? [...out, ...this.take(width)] : out;
  }

  /** Whether more lines are ready to be taken. */
  get isBehind(): boolean {
    return this.#parts.some((part) => part.kind === "markdown" && part.stream.isBehind());
  }

  /** The work in progress, as it looks now. */
  live(width: number): Line[] {
    const out: Line[] = [];
    const before = this.#last;
    for (const part of this.#parts) {
      if (part.kind === "block") continue;
      const isMarkdown = part.kind === "markdown";
      const lines = isMarkdown
        ? part.stream.live(proseWidth(width))
        : part.calls.flatMap((call) => toolLines(call, width, this.#now()));
      if (lines.length > 0 && !(isMarkdown && part.isBegun)) this.#gap(out, isMarkdown ? "other" : "tools");
      out.push(...lines);
    }
    this.#last = before;
    return out;
  }

  #finished(part: Part, width: number): Line[] {
    if (part.kind === "markdown") return part.stream.take(proseWidth(width), AT_ONCE);
    if (part.kind === "block") return part.block(width);
    return part.calls.flatMap((call) => toolLines(settled(call, this.#now()), width, this.#now()));
  }

  /** Whether the event belongs to the running turn. If so, notes when it arrived. */
  #hears(id: string): boolean {
    if (this.#turn?.id !== id) return false;
    this.#turn.heardAt = this.#now();
    return true;
  }

  #queue({ id, text, source, attachments }: Queued): void {
    this.#sources.set(id, source);
    this.#files.set(id, namesOf({ attachments }));
    if (!this.#over.has(id) && this.#turn?.id !== id) this.#waiting.set(id, { id, text, source: source.channel });
  }

  #begin(id: string, text: string): void {
    this.#waiting.delete(id);
    if (this.#turn?.id === id) return;
    this.#endParts();
    this.#flushCalm();
    this.#turn = { id, startedAt: this.#now(), heardAt: this.#now() };
    this.#spoken = "";
    this.#parts.push({ kind: "block", block: heading(text, this.#sources.get(id) ?? { channel: "tui" }, this.#files.get(id)) });
  }

  #delta({ id, text, restarted }: EventData<"message.delta">): void {
    if (!this.#hears(id)) return;
    if (restarted) {
      this.#endParts();
      if (this.#spoken.trim() !== "") this.print(noteBlock("the answer begins again"));
      this.#spoken = "";
    }
    if (text !== "") this.#say(text);
  }

  #say(text: string): void {
    this.#spoken += text;
    const tail = this.#parts.at(-1);
    if (tail?.kind === "markdown" && !tail.isEnded) return void tail.stream.feed(text);
    if (tail?.kind === "tools" && tail.calls.every(({ state }) => state !== "started")) tail.isEnded = true;
    const stream = createMarkdown({ links: this.#links });
    stream.feed(text.replace(/^\n+/, ""));
    this.#parts.push({ kind: "markdown", stream, isBegun: false, isEnded: false });
  }

  #tool({ id, tool: name, state, callId, args, output, exitCode, diff }: EventData<"message.tool">): void {
    if (state !== "started") {
      const isIt = (each: ToolCall) => (callId === undefined ? each.tool === name : each.callId === callId);
      const call = this.#calls().find((each) => each.message === id && each.state === "started" && isIt(each));
      if (!call) return;
      call.what = args ?? call.what;
      if (output !== undefined) call.output = `${call.output ?? ""}${output}`.slice(-MOST_OUTPUT);
      if (state !== "running") Object.assign(call, { state, exitCode, diff, endedAt: this.#now() });
      return;
    }
    const ordinal = this.#ordinals.get(`${id} ${name}`) ?? 0;
    this.#ordinals.set(`${id} ${name}`, ordinal + 1);
    const call: ToolCall = { message: id, tool: name, callId, ordinal, state, startedAt: this.#now() };
    this.#lastCall = call;
    const tail = this.#parts.at(-1);
    if (tail?.kind === "tools" && !tail.isEnded) return void tail.calls.push(call);
    if (tail?.kind === "markdown") {
      tail.stream.end();
      tail.isEnded = true;
    }
    this.#parts.push({ kind: "tools", calls: [call], isEnded: false });
  }

  #finish(message: Message): void {
    const { id, reply, status } = message;
    if (this.#over.has(id)) return;
    this.#over.add(id);
    this.#waiting.delete(id);
    if (this.#turn?.id !== id) {
      if (status === "cancelled" && !reply) return void this.print(noteBlock(`taken back: ${message.text}`));
      return void this.calmly(this.#whole(message));
    }
    this.#end(message);
  }

  /** Ends the running turn. */
  #end({ reply, status, error }: Message): void {
    if (reply && this.#spoken.trim() === "") this.#say(reply);
    this.#endParts();
    this.#turn = undefined;
    if (status === "cancelled") this.print(noteBlock("(cancelled)"));
    if (status === "failed") this.print(troubleBlock(failure(error?.message)));
    if (reply) this.#lastReply = reply;
    this.#flushCalm();
  }

  #whole(message: Message): Block {
    const { reply, status, error, text, source, steered } = message;
    if (reply) this.#lastReply = reply;
    return joined(
      heading(text, source, namesOf(message)),
      ...steered.map((each) => steerBlock(each.text)),
      ...(reply ? [markdownBlock(reply, this.#links)] : []),
      ...(status === "failed" ? [troubleBlock(failure(error?.message))] : []),
      ...(status === "cancelled" ? [noteBlock("(cancelled)")] : []),
    );
  }

  #calls(): ToolCall[] {
    return this.#parts.flatMap((part) => (part.kind === "tools" ? part.calls : []));
  }

  #isTorn(): boolean {
    return this.#parts.some((part) => part.kind === "markdown" && !part.isEnded && part.stream.isInside());
  }

  #endParts(): void {
    for (const part of this.#parts) {
      if (part.kind === "markdown") part.stream.end();
      if (part.kind !== "block") part.isEnded = true;
    }
  }

  #flushCalm(): void {
    for (const block of this.#calm.splice(0)) this.print(block);
  }

  /** Adds a blank line between things of different kinds. */
  #gap(out: Line[], kind: "tools" | "other"): void {
    if (this.#last !== "nothing" && !(kind === "tools" && this.#last === "tools")) out.push([]);
    this.#last = kind;
  }
}

const failure = (why: string | undefined) => `Sorry, I encountered an error: ${why ?? "nobody knows which."}`;

type Queued = Pick<Message, "id" | "text" | "source"> & { attachments?: Message["attachments"] | undefined };
const namesOf = ({ attachments }: Pick<Queued, "attachments">): string[] => (attachments ?? []).map(({ name }) => name);

/** A message's heading: its text, and its source if it was not typed at this keyboard. */
function heading(text: string, source: Message["source"], files: readonly string[] = []): Block {
  if (source.channel === "background") return noteBlock(`from the background (${source.about})`);
  if (source.channel === "schedule") return noteBlock(`by the schedule ${source.name}`);
  const said = withoutAttachments(text);
  const words = userBlock(said.text, source.channel === "tui" ? "" : `[${source.channel}]`);
  const attached = [...said.attached, ...files];
  if (attached.length === 0) return words;
  const note = noteBlock(`attached: ${attached.join(", ")}`);
  return (width) => [...words(width), ...note(width)];
}

/** The journal's record of a call on the screen. */
export function matching(calls: readonly JournalCall[], { tool, ordinal }: ToolCall): JournalCall | undefined {
  return calls.filter((each) => each.tool === tool)[ordinal];
}

function settled(call: ToolCall, now: number): ToolCall {
  return { ...call, state: stateAtTheEnd(call.state), endedAt: call.endedAt ?? now };
}
