/** A paste of more than this is shown as a marker in the line. */
const MOST_LINES = 10;
const MOST_CHARACTERS = 1_000;

/** Large pastes, which stand in the line as markers and are sent whole. */
export class FoldedPastes {
  readonly #texts = new Map<string, string>();

  /** The marker of a large text; a small one as it is. */
  fold(text: string): string {
    const lines = text.split("\n").length;
    if (lines <= MOST_LINES && text.length <= MOST_CHARACTERS) return text;
    const size = lines > 1 ? `${lines}·lines` : `${text.length}·characters`;
    // Without blanks, so that it is one word to whoever edits.
    const marker = `[pasted·${size}·#${this.#texts.size + 1}]`;
    this.#texts.set(marker, text);
    return marker;
  }

  /** A line with its markers replaced by what they stand for. */
  expand(line: string): string {
    return line.replace(/\[pasted·\d{1,9}·(?:lines|characters)·#\d{1,9}\]/g, (marker) => this.#texts.get(marker) ?? marker);
  }

  /** The marker that a text ends with. */
  endOf(text: string): string | undefined {
    return [...this.#texts.keys()].find((marker) => text.endsWith(marker));
  }

  /** What a marker stood for that is no longer whole after an edit. */
  brokenBy(before: string, after: string): string | undefined {
    for (const [marker, text] of this.#texts) if (before.includes(marker) && !after.includes(marker)) return text;
    return undefined;
  }
}
