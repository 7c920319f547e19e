import type { Said } from "../../protocol/runs.ts";
import { createMarkdown, type MarkdownStream } from "../markdown/stream.ts";
import { dim, type Line } from "../text/style.ts";
import { proseWidth } from "../transcript/blocks.ts";

interface Speaker {
  said: Said;
  markdown: MarkdownStream;
}

/** How much of what somebody is just saying is shown. */
const MOST_LIVE = 4;
const EDGE: Line = [dim("│ ")];

/** What agents say side by side, as markdown: whole lines as they are finished, and who speaks where that changes. */
export class RunWords {
  readonly #speakers = new Map<string, Speaker>();
  readonly #links: boolean;
  #speaking = "";
  #heard = "";

  constructor(links: boolean) {
    this.#links = links;
  }

  /** What is finished by it. */
  hear(said: Said, width: number): Line[] {
    const speaker = this.#speakers.get(said.key) ?? { said, markdown: createMarkdown({ links: this.#links }) };
    this.#speakers.set(said.key, speaker);
    this.#heard = said.key;
    speaker.markdown.feed(said.text);
    return this.#take(speaker, width);
  }

  /** The rest of what was said in a call that is over. */
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

  /** Something else was told: whoever goes on is named again. */
  interrupt(): void {
    this.#speaking = "";
  }

  /** The line that is just being said: by whoever has the word, or else by whoever was heard last. */
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
