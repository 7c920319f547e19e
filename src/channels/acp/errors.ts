import { RequestError } from "@agentclientprotocol/sdk";
import { ExitCode, messageOf, UserError } from "../../lib/errors.ts";

const INVALID_PARAMS = -32602;
const INTERNAL = -32603;

export const invalid = (message: string): RequestError => new RequestError(INVALID_PARAMS, message);
export const failed = (message: string): RequestError => new RequestError(INTERNAL, message);

/** The error as an editor shows it: IO's own sentence, with what to do. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const isTheirs = error instanceof UserError && (error.exitCode === ExitCode.usage || error.code === "bad_request");
  return isTheirs ? invalid(error.message) : failed(messageOf(error));
}
