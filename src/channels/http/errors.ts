import type { Context } from "hono";
import { type ErrorStatus, errorBody } from "../../protocol/errors.ts";
import { ERROR_HEADERS, errorObject } from "../openai/errors.ts";

/** A request that fails with this status. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: ErrorStatus;
  constructor(status: ErrorStatus, message: string) {
    super(message);
    this.status = status;
  }
}

/** Whether the path belongs to the API for OpenAI clients. */
export const isOpenAiPath = (path: string): boolean => path === "/v1" || path.startsWith("/v1/");

export function fail(context: Context, status: ErrorStatus, message: string, code?: string) {
  const body = errorBody(status, message, code);
  if (!isOpenAiPath(context.req.path)) return context.json(body, status);
  const known = status === 401 ? "invalid_api_key" : body.error.code;
  return context.json(errorObject({ status, message, param: null, code: known }), status, ERROR_HEADERS);
}
