import type { Attachment } from "../../../src/protocol/messages.ts";
import { keyHeader } from "./session-key.ts";

/** What the daemon said when it did not do what was asked. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface RequestOptions {
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Is shown the answer's headers. */
  onHeaders?: (headers: Headers) => void;
}

/** One request to the daemon that served this page. */
export async function request<T>(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<T> {
  const { signal, headers, onHeaders } = options;
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(path, {
    method,
    ...json,
    headers: { ...keyHeader(), ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refused(0, "The daemon does not answer. The page tries again by itself.");
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new Refused(response.status, wordsOf(answer) ?? `The daemon answered ${response.status}.`);
  onHeaders?.(response.headers);
  return answer as T;
}

/** Sends a file as it is. */
export async function upload(file: Blob, name: string): Promise<Attachment> {
  const headers = { ...keyHeader(), "content-type": "application/octet-stream", "x-filename": encodeURIComponent(name) };
  const response = await fetch("/api/files", { method: "POST", body: file, headers }).catch(unreachable);
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new Refused(response.status, wordsOf(answer) ?? `The daemon answered ${response.status}.`);
  return answer as Attachment;
}

/** The bytes at an address. */
export async function download(path: string): Promise<Blob> {
  const response = await fetch(path, { headers: keyHeader() }).catch(unreachable);
  if (!response.ok) throw new Refused(response.status, "This file is gone.");
  return response.blob();
}

const unreachable = (): never => {
  throw new Refused(0, "The daemon does not answer. The page tries again by itself.");
};

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> =>
  request<T>("GET", path, undefined, signal ? { signal } : {});
export const post = <T>(path: string, body: unknown = {}): Promise<T> => request<T>("POST", path, body);

/** A path with every part of it encoded. */
export const at = (...parts: string[]): string => `/api/${parts.map(encodeURIComponent).join("/")}`;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function wordsOf(answer: unknown): string | undefined {
  if (typeof answer !== "object" || answer === null || !("error" in answer)) return undefined;
  const { error } = answer;
  return typeof error === "object" && error !== null && "message" in error ? String(error.message) : undefined;
}
