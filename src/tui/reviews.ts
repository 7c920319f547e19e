import type { Client } from "../client/client.ts";
import { formatPageChange, type PageReview, type ReviewVerdict } from "../protocol/page-review.ts";
import { brief } from "./commands/command.ts";
import { coloured, dim, type Line } from "./text/style.ts";
import { type Block, noteBlock, plainBlock, safe } from "./transcript/blocks.ts";

export interface ReviewsDeps {
  say: (block: Block) => void;
  /** Opens a text in the user's editor; undefined if that fails. */
  edit: (text: string) => Promise<string | undefined>;
  /** Performs a request to the daemon and prints its errors. */
  attempt: (work: (client: Client) => Promise<void>) => Promise<unknown>;
  onChange: () => void;
}

const DONE = { keep: "Kept", change: "Changed", revert: "Reverted" } as const;
const LISTED = 3;

/** The agents' changes to the wiki, page by page. One key decides each. */
export class Reviews {
  readonly #deps: ReviewsDeps;
  #items: PageReview[] = [];
  #isDeciding = false;

  constructor(deps: ReviewsDeps) {
    this.#deps = deps;
  }

  async begin(client: Client): Promise<void> {
    this.#items = (await client.request<{ items: PageReview[] }>("GET", "/api/wiki/review")).items;
    if (this.#items.length === 0) this.#deps.say(noteBlock("nobody changed anything since you last looked"));
    this.#deps.onChange();
  }

  /** Handles a key that decides the visible page. Returns false for a key without a meaning here. */
  press(letter: string): boolean {
    const item = this.#items[0];
    if (!item || !/^[kcrsq]$/i.test(letter)) return false;
    if (this.#isDeciding) return true;
    const key = letter.toLowerCase();
    if (key === "q") this.#items = [];
    else if (key === "s") this.#items = this.#items.slice(1);
    else void this.#decide(item, key);
    return true;
  }

  /** The visible page and the available keys. */
  lines(): Line[] {
    const item = this.#items[0];
    if (!item) return [];
    const { path, by, at, said, fromOutside, contradictions } = item;
    const about = [
      `${formatPageChange(item)}, ${at.slice(0, 16).replace("T", " ")} UTC${fromOutside && by === "agent" ? ", with text from outside" : ""}`,
      ...(said === "" ? [] : [`asked: ${brief(said, 100)}`]),
      ...contradictions.slice(0, LISTED).map(({ otherPath, otherSays }) => `contradicts ${otherPath}: ${brief(otherSays, 100)}`),
    ];
    const more = this.#items.length - 1;
    return [
      [coloured("? ", "yellow"), { text: safe(path) }],
      ...about.map((line): Line => [{ text: `  ${safe(line)}` }]),
      [dim(`  k keeps, c changes, r reverts; s skips, q ends${more > 0 ? ` · ${more} more` : ""}`)],
    ];
  }

  async #decide({ id, path }: PageReview, key: string): Promise<void> {
    const { attempt, say, onChange } = this.#deps;
    this.#isDeciding = true;
    await attempt(async (client) => {
      const given = await this.#verdict(client, { id, path }, key);
      if (!given) return;
      await client.request("POST", "/api/wiki/review", given);
      say(plainBlock(`${DONE[given.verdict]} ${path}.`));
      this.#items = this.#items.filter((each) => each.id !== id);
    });
    this.#isDeciding = false;
    onChange();
  }

  async #verdict(client: Client, { id, path }: Pick<PageReview, "id" | "path">, key: string): Promise<ReviewVerdict | undefined> {
    if (key !== "c") return { path, id, verdict: key === "k" ? "keep" : "revert" };
    const { content } = await client.request<{ content: string }>(
      "GET",
      `/api/wiki/pages/${encodeURIComponent(`pages/${path}`)}`,
    );
    const left = await this.#deps.edit(content);
    const text = left !== undefined && content.endsWith("\n") ? `${left}\n` : left;
    if (text !== undefined && text !== content) return { path, id, verdict: "change", content: text };
    this.#deps.say(noteBlock(`${path} is as it was`));
    return undefined;
  }
}
