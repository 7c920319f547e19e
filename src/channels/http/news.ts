import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { usageError } from "../../lib/errors.ts";
import type { MakeDigest } from "../../news/digest.ts";
import { Digest } from "../../protocol/news.ts";
import { readDuration } from "../../schedules/when.ts";
import { answers } from "./shapes.ts";

export interface NewsRoutesDeps {
  digest: MakeDigest;
}

export function newsRoutes(app: OpenAPIHono, { digest }: NewsRoutesDeps): void {
  const one = createRoute({
    method: "get",
    path: "/api/digest",
    summary: "What was done, what failed, what waits and what it cost since a time, counted from the records",
    request: {
      query: z.object({
        since: z.string().max(40).default("24h").openapi({ description: "a length of time such as 24h or 7d, or a date" }),
      }),
    },
    responses: answers(200, Digest),
  });
  app.openapi(one, async (context) => {
    const now = new Date();
    return context.json(await digest(sinceOf(context.req.valid("query").since, now), now.toISOString()), 200);
  });
}

function sinceOf(given: string, now: Date): string {
  const ms = readDuration(given);
  const at = ms === undefined ? (/^\d{4}-\d\d-\d\d/.test(given) ? Date.parse(given) : Number.NaN) : now.getTime() - ms;
  if (Number.isNaN(at))
    throw usageError(`since: "${given.slice(0, 40)}" is no time. Write 24h, 7d or a date such as 2026-01-31.`);
  return new Date(at).toISOString();
}
