import { type Json, listed, quoted } from "./json.ts";
import type { Fault } from "./speak.ts";

/** A bad request, in OpenAI's format. */
export function invalid(message: string, param: string | null = null, code: string | null = null): Fault {
  return { status: 400, message, type: "invalid_request_error", param, code };
}

export const unsupportedParameter = (name: string, hint = ""): Fault =>
  invalid(`Unsupported parameter: '${name}' is not supported with this model.${hint}`, name, "unsupported_parameter");

export const missing = (name: string): Fault =>
  invalid(`Missing required parameter: '${name}'.`, name, "missing_required_parameter");

export const unsupportedValue = (name: string, value: unknown, more: string): Fault =>
  invalid(`Unsupported value: '${name}' does not support ${quoted(value)} with this model. ${more}`, name, "unsupported_value");

export const unknownValue = (name: string, value: unknown, known: readonly string[]): Fault =>
  invalid(`Invalid value: ${quoted(value)}. Supported values are: ${listed(known)}.`, name, "invalid_value");

export const wrongType = (name: string, expected: string, value: unknown): Fault =>
  invalid(`Invalid type for '${name}': expected ${expected}, but got ${typeName(value)} instead.`, name, "invalid_type");

export const emptyList = (name: string): Fault =>
  invalid(
    `Invalid '${name}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
    name,
    "empty_array",
  );

export const longList = (name: string, most: number, length: number): Fault =>
  invalid(
    `Invalid '${name}': array too long. Expected an array with maximum length ${most}, but got an array with length ${length} instead.`,
    name,
    "array_above_max_length",
  );

export const longText = (name: string, most: number, length: number): Fault =>
  invalid(
    `Invalid '${name}': string too long. Expected a string with maximum length ${most}, but got a string with length ${length} instead.`,
    name,
    "string_above_max_length",
  );

export const emptyText = (name: string): Fault =>
  invalid(
    `Invalid '${name}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
    name,
    "empty_string",
  );

export const wrongPattern = (name: string, pattern: string): Fault =>
  invalid(
    `Invalid '${name}': string does not match pattern. Expected a string that matches the pattern '${pattern}'.`,
    name,
    "invalid_value",
  );

/** OpenAI's error for unknown fields in a body. */
export function unrecognized(body: Json, known: readonly string[]): Fault | undefined {
  const strange = Object.keys(body).filter((key) => !known.includes(key));
  if (strange.length === 0) return undefined;
  return invalid(`Unrecognized request argument${strange.length > 1 ? "s" : ""} supplied: ${strange.join(", ")}`);
}

/** OpenAI's error for a missing or wrong key. */
export function keyFault(authorization: string | undefined, key: string): Fault | undefined {
  const given = /^Bearer\s+(\S+)$/i.exec(authorization ?? "")?.[1];
  if (given === key) return undefined;
  if (given === undefined)
    return {
      ...{ status: 401, type: "invalid_request_error", param: null, code: null },
      message:
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys.",
    };
  return {
    ...{ status: 401, type: "invalid_request_error", param: null, code: "invalid_api_key" },
    message: `Incorrect API key provided: ${masked(given)}. You can find your API key at https://platform.openai.com/account/api-keys.`,
  };
}

export function modelNotFound(model: string): Fault {
  return {
    ...{ status: 404, type: "invalid_request_error", param: null, code: "model_not_found" },
    message: `The model \`${model}\` does not exist or you do not have access to it.`,
  };
}

function masked(key: string): string {
  if (key.length <= 12) return key.slice(0, 2) + "*".repeat(Math.max(0, key.length - 2));
  return key.slice(0, 8) + "*".repeat(key.length - 12) + key.slice(-4);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return "a string";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal";
  return "an object";
}
