import type { Trouble } from "../lib/errors.ts";
import type { ApiError } from "./api.ts";

/** Tells IO's own commands which exit code to use after a failed request. */
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

/** The HTTP status for a `UserError`; without a specific trouble it is a bad request. */
export function statusOf(trouble: Trouble | undefined): ErrorStatus {
  return trouble === undefined ? 400 : STATUS[trouble];
}

/** An error as the API and `--json` report it; a code more specific than the status replaces the default. */
export function errorBody(status: ErrorStatus, message: string, code: string = CODES[status]): ApiError {
  return { error: { code, message } };
}
