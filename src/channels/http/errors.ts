import type { Context } from "hono";
import { type ErrorStatus, errorBody } from "../../protocol/errors.ts";

/** A request that cannot be served, and the status that says so. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: ErrorStatus;
  constructor(status: ErrorStatus, message: string) {
    super(message);
    this.status = status;
  }
}

export function fail(context: Context, status: ErrorStatus, message: string) {
  return context.json(errorBody(status, message), status);
}
