/** A failed request of an OpenAI client, in the format that those clients know. */
export class OpenAiError extends Error {
  override readonly name = "OpenAiError";
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null;
  constructor(status: number, message: string, code: string | null = null, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/** An error about one part of a request. */
export const badRequest = (param: string, message: string, code: string | null = null): OpenAiError =>
  new OpenAiError(400, `${param}: ${message}`, code, param);

/** The error in the format of OpenAI's API. */
export function errorObject({ status, message, param, code }: Pick<OpenAiError, "status" | "message" | "param" | "code">) {
  return { error: { message, type: typeOf(status), param, code } };
}

/** Without this, clients retry most failed requests twice. */
export const ERROR_HEADERS = { "x-should-retry": "false" };

function typeOf(status: number): string {
  if (status === 403) return "permission_error";
  if (status === 429) return "insufficient_quota";
  return status >= 500 ? "server_error" : "invalid_request_error";
}
