import type { Said } from "../../protocol/runs.ts";
import { createMarkdown, type MarkdownStream } from "../markdown/stream.ts";
import { dim, type Line } from "../text/style.ts";
import { proseWidth } from "../transcript/blocks.ts";

interface Speaker {
  said: Said;
  markdown: MarkdownStream;
}

/** How many lines of unfinished text are shown. */
const MOST_LIVE = 4;
const EDGE: Line = [dim("│ ")];

/**
 * The text of agents that speak in parallel, as Markdown: complete lines when they are finished, with a header when the speaker
 * changes.
 */
export class RunWords {
  readonly #speakers = new Map<string, Speaker>();
  readonly #links: boolean;
  #speaking = "";
  #heard = "";

  constructor(links: boolean) {
    this.#links = links;
  }

  /** Returns the lines that this text completes. */
  hear(said: Said, width: number): Line[] {
    const speaker = this.#speakers.get(said.key) ?? { said, markdown: createMarkdown({ links: this.#links }) };
    this.#speakers.set(said.key, speaker);
    this.#heard = said.key;
    speaker.markdown.feed(said.text);
    return this.#take(speaker, width);
  }

  /** Returns the remaining lines of a call that has ended. */
  end(key: string, width: number): Line[] {
    const speaker = this.#speakers.get(key);
    if (!speaker) return [];
    this.#speakers.delete(key);
    speaker.markdown.end();
    return this.#take(speaker, width);
  }

  endAll(width: number): Line[] {
    return [...this.#speakers.keys()].flatMap((key) => this.end(key, width));
  }

  /** Called after other output, so that the next line gets a header again. */
  interrupt(): void {
    this.#speaking = "";
  }

  /** The unfinished lines of the current speaker, or else of the agent heard last. */
  live(width: number): Line[] {
    for (const key of [this.#speaking, this.#heard]) {
      const speaker = this.#speakers.get(key);
      const lines = speaker?.markdown.live(textWidth(width)).slice(-MOST_LIVE) ?? [];
      if (!speaker || lines.length === 0) continue;
      const head = key === this.#speaking ? [] : [headOf(speaker.said)];
      return [...head, ...lines.map((line): Line => [...EDGE, ...line])];
    }
    return [];
  }

  #take({ said, markdown }: Speaker, width: number): Line[] {
    const lines = markdown.take(textWidth(width)).map((line): Line => [...EDGE, ...line]);
    if (lines.length === 0 || this.#speaking === said.key) return lines;
    this.#speaking = said.key;
    return [headOf(said), ...lines];
  }
}

export const headOf = ({ agent, stream }: Said): Line => [dim(`┌ ${agent}${stream === null ? "" : `, stream ${stream}`}`)];

const textWidth = (width: number) => Math.max(8, proseWidth(width) - 2);
