/** A paste with more lines or characters than this appears in the line as a marker. */
const MOST_LINES = 10;
const MOST_CHARACTERS = 1_000;
/** Text longer than this is always folded, wherever it comes from, since the line is laid out again with every key. */
const MOST_SHOWN = 20_000;

/** Large pastes, which appear in the line as markers and are sent in full. */
export class FoldedPastes {
  readonly #texts = new Map<string, string>();

  /** Returns a marker for a large text, or a small text itself. */
  fold(text: string): string {
    // A final line break does not start another line.
    const lines = text.replace(/\n$/, "").split("\n").length;
    if (lines <= MOST_LINES && text.length <= MOST_CHARACTERS) return text;
    const [known] = [...this.#texts].find(([, each]) => each === text) ?? [];
    if (known !== undefined) return known;
    const size = lines > 1 ? `${lines}·lines` : `${text.length}·characters`;
    // Without spaces, so that editing treats it as one word.
    const marker = `[pasted·${size}·#${this.#texts.size + 1}]`;
    this.#texts.set(marker, text);
    return marker;
  }

  /** Folds a text from the history or a saved draft if it is too long for the line. */
  recall(text: string): string {
    return text.length > MOST_SHOWN ? this.fold(text) : text;
  }

  /** Replaces the markers in a line with their texts. */
  expand(line: string): string {
    return line.replace(/\[pasted·\d{1,9}·(?:lines|characters)·#\d{1,9}\]/g, (marker) => this.#texts.get(marker) ?? marker);
  }

  /** The marker that a text ends with. */
  endOf(text: string): string | undefined {
    return [...this.#texts.keys()].find((marker) => text.endsWith(marker));
  }

  /** The text of a marker that an edit has just broken. */
  brokenBy(before: string, after: string): string | undefined {
    for (const [marker, text] of this.#texts) if (before.includes(marker) && !after.includes(marker)) return text;
    return undefined;
  }
}
