import { UserError } from "../../lib/errors.ts";
import { oneLine } from "../../lib/quoted.ts";
import { formatPageChange, type PageReview } from "../../protocol/page-review.ts";
import type { State } from "../../store/state.ts";
import type { PageReviews } from "../../wiki/review.ts";
import type { Wiki } from "../../wiki/wiki.ts";
import { dataOf } from "./buttons.ts";
import { pieceOf } from "./format/answer.ts";
import { cutIntoPieces } from "./format/pieces.ts";
import type { Run } from "./format/runs.ts";
import type { Button } from "./part.ts";
import type { Teller } from "./teller.ts";

export interface ReviewListDeps {
  pageReviews: PageReviews;
  wiki: Pick<Wiki, "peek">;
  teller: Teller;
  state: State;
}

/** How many pages are shown at a time; the next ones appear as these are decided. */
const SHOWN = 4;
const MAX_TEXT = 2_500;
const LIST = "telegram-review";

/** The wiki pages that agents changed, with three buttons each, in one message that is edited as pages are decided. */
export function createReviewList({ pageReviews, wiki, teller, state }: ReviewListDeps) {
  function reply(): { runs: Run[]; buttons: Button[][] } {
    const all = pageReviews.list();
    if (all.length === 0) return { runs: [{ text: "Nobody changed anything since you last looked." }], buttons: [] };
    const shown = all.slice(0, SHOWN);
    const more = all.length > SHOWN ? `\n… and ${all.length - SHOWN} more` : "";
    return {
      runs: [
        { text: "Changed since you last looked", bold: true },
        { text: `\n${shown.map((item, at) => `${at + 1}. ${tell(item)}`).join("\n")}${more}` },
      ],
      buttons: shown.map(({ id }, at) => [
        { text: `✅ Keep ${at + 1}`, data: dataOf({ does: "keep", review: id }) },
        { text: `✏️ Change ${at + 1}`, data: dataOf({ does: "change", review: id }) },
        { text: `↩️ Revert ${at + 1}`, data: dataOf({ does: "revert", review: id }) },
      ]),
    };
  }

  /** Updates the list that was last requested. */
  async function renew(): Promise<void> {
    const key = state.get(LIST);
    const place = key === undefined ? undefined : teller.placeOf(key);
    if (key === undefined || !place) return;
    const { runs, buttons } = reply();
    await teller.show(key, place, { pieces: cutIntoPieces(runs).map(pieceOf), buttons });
  }

  return {
    reply,
    renew,
    shownAs: (key: string): void => state.set(LIST, key),
    /** Keeps or reverts a page; returns a short confirmation. */
    async decide(id: string, verdict: "keep" | "revert"): Promise<string> {
      const { path } = await pageReviews.decide({ path: known(id).path, id, verdict }, "telegram");
      return `${verdict === "keep" ? "Kept" : "Reverted"} ${path}.`;
    },
    /** The page, and how to rewrite it. */
    howToChange(id: string): Run[] {
      const { path } = known(id);
      const text = wiki.peek(path) ?? "";
      return [
        { text: `${path} now:\n` },
        { text: text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n…` : text || "(deleted)", pre: "" },
        { text: "\nSend it as it should be, below this line:\n" },
        { text: `/change ${path}`, code: true },
      ];
    },
    /** Applies the text after /change: the page's path on the first line, its new text below. */
    async change(given: string): Promise<string> {
      const [, path = "", content = ""] = /^([^\n]+)\n([\s\S]+)$/.exec(given) ?? [];
      if (content.trim() === "")
        throw new UserError("Name the page on the first line and write its new text below: /change general/tea");
      const done = await pageReviews.decide(
        { path: path.trim(), verdict: "change", content: `${content.trimEnd()}\n` },
        "telegram",
      );
      return `Changed ${done.path}.`;
    },
  };

  function known(id: string): PageReview {
    const item = pageReviews.find(id);
    if (!item) throw new UserError("This was decided already, or the page was changed again. /review shows what is left.");
    return item;
  }
}
export type ReviewList = ReturnType<typeof createReviewList>;

function tell(review: PageReview): string {
  const { path, by, at, fromOutside, said, contradictions } = review;
  const lines = [
    `${oneLine(path, 120)}, ${oneLine(formatPageChange(review), 80)}, ${at.slice(0, 16).replace("T", " ")} UTC`,
    ...(fromOutside && by === "agent" ? ["   ⚠ with text from outside"] : []),
    ...(said === "" ? [] : [`   asked: ${oneLine(said, 100)}`]),
    ...contradictions
      .slice(0, 2)
      .map(({ otherPath, otherSays }) => `   ≠ ${oneLine(otherPath, 100)}: ${oneLine(otherSays, 120)}`),
  ];
  return lines.join("\n");
}
