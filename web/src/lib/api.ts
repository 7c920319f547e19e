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
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
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
