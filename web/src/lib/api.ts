import type { Attachment } from "../../../src/protocol/messages.ts";
import { keyHeader } from "./session-key.ts";

/** The daemon's error response. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Dispatched on the window when the daemon no longer accepts the session. */
export const SESSION_ENDED = "io.sessionended";

export interface RequestOptions {
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Receives the response's headers. */
  onHeaders?: (headers: Headers) => void;
}

/** Sends one request to the daemon that served this page. */
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
  // A refused sign-in is not the end of a session.
  if (!response.ok) throw path === "/api/login" ? refusal(response, answer) : noticed(refusal(response, answer));
  onHeaders?.(response.headers);
  return answer as T;
}

/** Uploads a file's raw bytes. */
export async function upload(file: Blob, name: string): Promise<Attachment> {
  const headers = { ...keyHeader(), "content-type": "application/octet-stream", "x-filename": encodeURIComponent(name) };
  const response = await fetch("/api/files", { method: "POST", body: file, headers }).catch(unreachable);
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw noticed(refusal(response, answer));
  return answer as Attachment;
}

/** Downloads a file's bytes. */
export async function download(path: string): Promise<Blob> {
  const response = await fetch(path, { headers: keyHeader() }).catch(unreachable);
  if (!response.ok) throw noticed(new Refused(response.status, "This file is gone."));
  return response.blob();
}

const refusal = ({ status }: Response, answer: unknown) =>
  new Refused(status, wordsOf(answer) ?? `The daemon answered ${status}.`);

/** Tells the whole page that the session has ended, whichever part sent the request, so that it offers to sign in again. */
function noticed(refused: Refused): Refused {
  if (refused.status !== 401) return refused;
  globalThis.dispatchEvent?.(new CustomEvent(SESSION_ENDED));
  return new Refused(401, "Your session had ended. Try that again.");
}

const unreachable = (): never => {
  throw new Refused(0, "The daemon does not answer. The page tries again by itself.");
};

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> =>
  request<T>("GET", path, undefined, signal ? { signal } : {});
export const post = <T>(path: string, body: unknown = {}): Promise<T> => request<T>("POST", path, body);

/** Builds an API path with every part encoded. */
export const at = (...parts: string[]): string => `/api/${parts.map(encodeURIComponent).join("/")}`;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function wordsOf(answer: unknown): string | undefined {
  if (typeof answer !== "object" || answer === null || !("error" in answer)) return undefined;
  const { error } = answer;
  return typeof error === "object" && error !== null && "message" in error ? String(error.message) : undefined;
}
