import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { PageReview, ReviewVerdict } from "../../protocol/page-review.ts";
import type { PageReviews } from "../../wiki/review.ts";
import { answers, body } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

export interface PageReviewRoutesDeps {
  pageReviews: PageReviews;
}

export function pageReviewRoutes(app: OpenAPIHono, { pageReviews }: PageReviewRoutesDeps, channelOf: ChannelOf): void {
  const list = createRoute({
    method: "get",
    path: "/api/wiki/review",
    summary: "The pages that agents changed since a person last looked, the latest first",
    responses: answers(200, z.object({ items: z.array(PageReview) })),
  });
  app.openapi(list, (context) => context.json({ items: pageReviews.list() }, 200));

  const decide = createRoute({
    method: "post",
    path: "/api/wiki/review",
    summary: "Keeps a page as it is, changes it, or brings back exactly what stood there before",
    request: { body: body(ReviewVerdict) },
    responses: answers(200, PageReview),
  });
  app.openapi(decide, async (context) => {
    const given = context.req.valid("json");
    return context.json(await pageReviews.decide(given, channelOf(context)), 200);
  });
}
