import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { z } from "zod";
import type { Trouble } from "../../lib/errors.ts";
import type { ApiError } from "../../protocol/api.ts";

const CODES = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  413: "too_large",
  429: "too_many",
  500: "internal",
  503: "unavailable",
} as const;
export type ErrorStatus = keyof typeof CODES & ContentfulStatusCode;
const STATUS: Record<Trouble, ErrorStatus> = { missing: 404, conflict: 409, "too large": 413, unavailable: 503 };

/** How a person's trouble is told to a program; one of no particular kind is a request that was put wrongly. */
export function statusOf(trouble: Trouble | undefined): ErrorStatus {
  return trouble === undefined ? 400 : STATUS[trouble];
}

/** A request that cannot be served, and the status that says so. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: ErrorStatus;
  constructor(status: ErrorStatus, message: string) {
    super(message);
    this.status = status;
  }
}

export function errorBody(status: ErrorStatus, message: string): ApiError {
  return { error: { code: CODES[status], message } };
}

export function fail(context: Context, status: ErrorStatus, message: string) {
  return context.json(errorBody(status, message), status);
}

/** What is wrong with a request, field by field. */
export function explain(error: z.core.$ZodError): string {
  return error.issues
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join(".")}: ${issue.message}` : issue.message))
    .join("; ");
}
