import { z } from "zod";

/** Two places in the wiki that say different things of the same. */
export const Contradiction = z
  .object({
    path: z.string(),
    says: z.string(),
    otherPath: z.string(),
    otherSays: z.string(),
  })
  .meta({ id: "Contradiction" });
export type Contradiction = z.infer<typeof Contradiction>;

/** A page that agents, or somebody whom IO does not know, changed since a person last looked at it. */
export const PageReview = z
  .object({
    /** Names these very changes: another one after them is another review. */
    id: z.string(),
    path: z.string(),
    /** What the last of them did. */
    change: z.enum(["written", "deleted"]),
    /** How many changes there were since. */
    changes: z.number().int(),
    /** Who made the last of them: an agent, or somebody who changed the file outside IO, by whom is not known. */
    by: z.enum(["agent", "outside"]),
    /** Who made the last of them, for which message or task, and what was said there. */
    actor: z.string(),
    owner: z.string().nullable(),
    conversation: z.string().nullable(),
    said: z.string(),
    at: z.string(),
    /** Whether text from outside (a web page, an issue, a raw source) went into the page, or was read in the same work before. */
    fromOutside: z.boolean(),
    /** The version that stood before; null where there was no page. */
    before: z.string().nullable(),
    /** What it says differently from other pages, found when it was written, as far as it still stands in both. */
    contradictions: z.array(Contradiction),
  })
  .meta({ id: "PageReview" });
const PagePath = z.string().min(1).max(2_000);
const ReviewId = z.string().max(100).optional().describe("the changes that were looked at; 409 if there were more since");

/** How one says who changed a file that is no agent's work and that nobody told IO of. */
export const UNKNOWN_WRITER = "changed outside, by whom is not known";

/** Who did what to a page that waits to be looked at. */
export const tellChange = ({ change, by, actor }: Pick<PageReview, "change" | "by" | "actor">): string =>
  by === "agent" ? `${change} by ${actor}` : change === "deleted" ? "deleted outside, by whom is not known" : UNKNOWN_WRITER;

/** What a person says of such a page: right as it is, other words instead, or back to what stood there before. */
export const ReviewVerdict = z.discriminatedUnion("verdict", [
  z.strictObject({ path: PagePath, id: ReviewId, verdict: z.enum(["keep", "revert"]) }),
  z.strictObject({ path: PagePath, id: ReviewId, verdict: z.literal("change"), content: z.string() }),
]);
export type PageReview = z.infer<typeof PageReview>;
export type ReviewVerdict = z.infer<typeof ReviewVerdict>;
