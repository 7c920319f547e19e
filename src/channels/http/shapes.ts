import { isAbsolute } from "node:path";
import { z } from "@hono/zod-openapi";
import { ApiError } from "../../protocol/api.ts";

/** The JSON body of a route. */
export function body<T extends z.ZodType>(schema: T) {
  return { required: true, content: { "application/json": { schema } } };
}

/** A project's folder. The folder in which the daemon was started means nothing to whoever asks. */
export const ProjectPath = z
  .string()
  .min(1)
  .refine(isAbsolute, "is not a whole path: give the path of the project's folder from the root, such as /home/me/app");

/** A page of a list. It asks for one more than it shows, so that `next` exists only if there is more. */
export function pageOf<T>(limit: number, ask: (limit: number) => T[], nextOf: (last: T) => string) {
  const found = ask(limit + 1);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, ...(found.length > limit && last !== undefined && { next: nextOf(last) }) };
}

/** The JSON response of a route, and the error that every route may return. */
export function answers<const S extends number, T extends z.ZodType>(status: S, schema: T) {
  const json = { description: "The answer", content: { "application/json": { schema } } };
  const failed = { description: "The request was not served", content: { "application/json": { schema: ApiError } } };
  return { [status]: json, default: failed } as { [K in S]: typeof json } & { default: typeof failed };
}
