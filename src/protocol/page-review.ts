import { z } from "zod";

/** Two statements in the wiki that contradict each other. */
export const Contradiction = z
  .object({
    path: z.string(),
    says: z.string(),
    otherPath: z.string(),
    otherSays: z.string(),
  })
  .meta({ id: "Contradiction" });
export type Contradiction = z.infer<typeof Contradiction>;

/** A page that agents or unknown writers changed since a person last reviewed it. */
export const PageReview = z
  .object({
    /** Identifies exactly these changes: a further change creates another review. */
    id: z.string(),
    path: z.string(),
    /** What the last change did. */
    change: z.enum(["written", "deleted"]),
    /** How many changes there were. */
    changes: z.number().int(),
    /** Who made the last change: an agent, or an unknown writer outside IO. */
    by: z.enum(["agent", "outside"]),
    /** Who made the last change, for which message or task, and with what text. */
    actor: z.string(),
    owner: z.string().nullable(),
    conversation: z.string().nullable(),
    said: z.string(),
    at: z.string(),
    /** Whether outside text (a web page, an issue, a raw source) went into the page, or was read earlier in the same work. */
    fromOutside: z.boolean(),
    /** The version before the changes; null if there was no page. */
    before: z.string().nullable(),
    /** Contradictions with other pages that were found when it was written and still exist in both. */
    contradictions: z.array(Contradiction),
  })
  .meta({ id: "PageReview" });
const PagePath = z.string().min(1).max(2_000);
const ReviewId = z.string().max(100).optional().describe("the changes that were looked at; 409 if there were more since");

/** How IO names an unknown writer, who is not an agent. */
export const UNKNOWN_WRITER = "changed outside, by whom is not known";

/** Who changed a page that waits for review, and how. */
export const formatPageChange = ({ change, by, actor }: Pick<PageReview, "change" | "by" | "actor">): string =>
  by === "agent" ? `${change} by ${actor}` : change === "deleted" ? "deleted outside, by whom is not known" : UNKNOWN_WRITER;

/** A person's verdict on such a page: keep it, replace its text, or revert it. */
export const ReviewVerdict = z.discriminatedUnion("verdict", [
  z.strictObject({ path: PagePath, id: ReviewId, verdict: z.enum(["keep", "revert"]) }),
  z.strictObject({ path: PagePath, id: ReviewId, verdict: z.literal("change"), content: z.string() }),
]);
export type PageReview = z.infer<typeof PageReview>;
export type ReviewVerdict = z.infer<typeof ReviewVerdict>;
