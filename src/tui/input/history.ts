import { type Draft, withText } from "./editor.ts";

/** Up and Down step through what was sent before. The unsent line waits at the end. */
export class History {
  readonly #entries: string[];
  #at: number;
  #unsent = "";

  constructor(entries: readonly string[]) {
    this.#entries = [...entries];
    this.#at = this.#entries.length;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** Adds an entry unless it equals the last one. Returns whether it was added. */
  add(text: string): boolean {
    const isNew = this.#entries.at(-1) !== text;
    if (isNew) this.#entries.push(text);
    this.#at = this.#entries.length;
    return isNew;
  }

  /** The position of the latest entry before `before` that contains these words. */
  find(words: string, before = this.#entries.length): number | undefined {
    const wanted = words.toLowerCase();
    for (let at = before - 1; at >= 0; at -= 1) if (this.#entries[at]!.toLowerCase().includes(wanted)) return at;
    return undefined;
  }

  at(place: number): string {
    return this.#entries[place] ?? "";
  }

  step(draft: Draft, by: -1 | 1): Draft {
    const next = this.#at + by;
    if (next < 0 || next > this.#entries.length) return draft;
    if (this.#at === this.#entries.length) this.#unsent = draft.text;
    this.#at = next;
    return withText(draft, this.#entries[next] ?? this.#unsent);
  }
}
