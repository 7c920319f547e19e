import type { Trouble } from "../lib/errors.ts";
import type { ApiError } from "./api.ts";

/** Tells IO's own commands how to end after a refusal. */
export const EXIT_CODE_HEADER = "io-exit-code";

const CODES = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  413: "too_large",
  415: "unsupported_type",
  429: "too_many",
  500: "internal",
  503: "unavailable",
} as const;
export type ErrorStatus = keyof typeof CODES;
const STATUS: Record<Trouble, ErrorStatus> = { missing: 404, conflict: 409, "too large": 413, unavailable: 503 };

/** How a person's trouble is told to a program; one of no particular kind is a request that was put wrongly. */
export function statusOf(trouble: Trouble | undefined): ErrorStatus {
  return trouble === undefined ? 400 : STATUS[trouble];
}

/** An error as the API and `--json` tell it; a code that says more than the status stands in its place. */
export function errorBody(status: ErrorStatus, message: string, code: string = CODES[status]): ApiError {
  return { error: { code, message } };
}
