import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { UserError } from "../lib/errors.ts";
import { oneLine } from "../lib/quoted.ts";
import { packageVersion } from "../lib/version.ts";

/** Why a request to a forge failed. With `uncertain`, the response was lost and the forge may have carried out the request. */
export type ForgeTrouble = "unauthorized" | "forbidden" | "missing" | "invalid" | "limited" | "unreachable" | "uncertain" | "odd";

export class ForgeError extends UserError {
  readonly kind: ForgeTrouble;
  /** When the request may be sent again, if the forge says so. */
  readonly retryAt: number | undefined;
  constructor(kind: ForgeTrouble, message: string, { retryAt, cause }: { retryAt?: number; cause?: unknown } = {}) {
    super(message, {
      ...(kind === "missing" ? { trouble: "missing" } : UNAVAILABLE.includes(kind) ? { trouble: "unavailable" } : {}),
      cause,
    });
    this.kind = kind;
    this.retryAt = retryAt;
  }
}
const UNAVAILABLE: readonly ForgeTrouble[] = ["limited", "unreachable", "uncertain"];
const PASSING: readonly ForgeTrouble[] = [...UNAVAILABLE, "unauthorized"];

/** Whether the same request may succeed later, for example after an expired token was renewed. */
export const isPassing = (error: unknown): boolean =>
  error instanceof ForgeError ? PASSING.includes(error.kind) : error instanceof UserError && error.trouble === "unavailable";

export interface ForgeClientDeps {
  /** The API's address, as the user configured it. */
  apiUrl: string;
  token: string;
  /** The authorization scheme in front of the token. */
  scheme: "Bearer" | "token";
  accept: string;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

type Query = Record<string, string | number | undefined>;

interface Paging {
  /** The name of the parameter for the size of a page. */
  sizeName?: string;
  /** How many pages are read at most. */
  most?: number;
}

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

const REQUEST_MS = 30_000;
const READ_TRIES = 4;
const MOST_REDIRECTS = 3;
/** If the forge asks for a longer wait than this, the request fails for now. */
const LONGEST_WAIT_MS = 20_000;
const MOST_PAGES = 20;
/** A first look has to see all open issues: Gitea lists the newest first, 50 at a time. */
export const MOST_PAGES_OF_ISSUES = 1_000;
const PAGE = 100;
const KEPT_ANSWERS = 300;
/** Long lists are read in pages of up to half a megabyte each. */
const KEPT_CHARACTERS = 20_000_000;
const LOG_TAIL = 64_000;
const LONGEST_LOG = 50_000_000;

/** The latest answers with their ETags; the oldest ones are forgotten if there are too many. */
function createKeptAnswers() {
  const kept = new Map<string, { etag: string; answer: Answer }>();
  return {
    get: (address: string) => kept.get(address),
    keep(address: string, etag: string, answer: Answer): void {
      kept.delete(address);
      kept.set(address, { etag, answer });
      let characters = [...kept.values()].reduce((sum, each) => sum + each.answer.text.length, 0);
      for (const [oldest, { answer: known }] of kept) {
        if (kept.size <= KEPT_ANSWERS && characters <= KEPT_CHARACTERS) return;
        characters -= known.text.length;
        kept.delete(oldest);
      }
    },
  };
}

/**
 * Sends requests to one forge, with ETags, rate limits and redirects of renamed repositories. Only the API's host gets the
 * token.
 */
function createRequests({ apiUrl, token, scheme, accept, headers: more = {}, signal }: ForgeClientDeps) {
  const base = new URL(apiUrl);
  const below = base.href.endsWith("/") ? base.href.slice(0, -1) : base.href;
  const kept = createKeptAnswers();

  const addressOf = (path: string, query: Query = {}) => {
    const url = new URL(`${below}${path}`);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
    return url;
  };
  const isOurs = (url: URL) => url.origin === base.origin;

  /** Sends one request and follows the redirects of a renamed repository. */
  async function once(method: string, first: URL, body?: unknown): Promise<Answer> {
    let url = first;
    for (let hops = 0; ; hops += 1) {
      const known = method === "GET" ? kept.get(url.href) : undefined;
      const response = await fetch(url, {
        method,
        redirect: "manual",
        signal: limited(signal),
        headers: {
          authorization: `${scheme} ${token}`,
          accept,
          "user-agent": `io/${packageVersion()}`,
          ...more,
          ...(known && { "if-none-match": known.etag }),
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const location = response.headers.get("location");
      if ([301, 302, 307, 308].includes(response.status) && location !== null && hops < MOST_REDIRECTS) {
        await response.body?.cancel();
        const next = new URL(location, url);
        if (!isOurs(next)) throw new ForgeError("odd", `${base.host} leads to ${next.host}, which IO gives no token to.`);
        url = next;
        continue;
      }
      if (response.status === 304 && known) {
        await response.body?.cancel();
        return known.answer;
      }
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      const etag = response.headers.get("etag");
      if (method === "GET" && etag !== null && response.status === 200) {
        kept.keep(url.href, etag, answer);
      }
      return answer;
    }
  }

  /** Sends a GET request and retries while that makes sense. */
  async function read(url: URL): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      let answer: Answer | undefined;
      let cause: unknown;
      try {
        answer = await once("GET", url);
      } catch (error) {
        if (error instanceof ForgeError || signal?.aborted) throw error;
        cause = error;
      }
      const isFault = answer === undefined || answer.status >= 500;
      const asked = answer && isFault ? retryAfter(answer.headers, Date.now()) : undefined;
      const wait = isFault ? (asked ?? 200 * 4 ** (tries - 1)) : waitOf(answer!, Date.now());
      if (answer !== undefined && (answer.status < 400 || wait === undefined)) return checked(answer, url);
      if (tries >= READ_TRIES || (wait ?? 0) > LONGEST_WAIT_MS) {
        if (answer) return checked(answer, url);
        throw unreachable(base, cause);
      }
      await sleep(wait, undefined, { ...(signal && { signal }) });
    }
  }

  /** Sends a request that may change something. It is retried only if the forge certainly did not carry it out. */
  async function send(method: "POST" | "PATCH" | "PUT", path: string, body: unknown): Promise<Answer> {
    const url = addressOf(path);
    for (let tries = 1; ; tries += 1) {
      let answer: Answer;
      try {
        answer = await once(method, url, body);
      } catch (error) {
        if (error instanceof ForgeError) throw error;
        if (wasNotSent(error)) throw unreachable(base, error);
        throw new ForgeError("uncertain", `${base.host} did not answer, so nobody knows whether it took the request.`, {
          cause: error,
        });
      }
      const wait = waitOf(answer, Date.now());
      if (wait === undefined || wait > LONGEST_WAIT_MS || tries >= READ_TRIES) {
        if (answer.status >= 500)
          throw new ForgeError(
            "uncertain",
            `${base.host} failed with ${answer.status}: nobody knows whether it took the request.`,
          );
        return checked(answer, url);
      }
      await sleep(wait, undefined, { ...(signal && { signal }) });
    }
  }

  function checked(answer: Answer, url: URL): Answer {
    if (answer.status < 400) return answer;
    throw refusal(answer, { url, host: base.host, now: Date.now() });
  }

  const tail = (path: string) => readTail(addressOf(path), { authorization: `${scheme} ${token}`, ...more }, signal);

  return { host: base.host, addressOf, isOurs, read, send, tail };
}

/** Reads the end of a text. If it is stored on another host, that host does not get the token. */
async function readTail(first: URL, own: Record<string, string>, signal: AbortSignal | undefined): Promise<string> {
  let url = first;
  for (let hops = 0; hops <= MOST_REDIRECTS; hops += 1) {
    const response = await fetch(url, { redirect: "manual", signal: limited(signal), headers: hops === 0 ? own : {} });
    const location = response.headers.get("location");
    const isMoved = response.status >= 300 && response.status < 400 && location !== null;
    if (response.ok) return endOf(response);
    await response.body?.cancel();
    if (!isMoved)
      throw refusal({ status: response.status, headers: response.headers, text: "" }, { url, host: url.host, now: Date.now() });
    url = new URL(location, url);
    if (!/^https?:$/.test(url.protocol)) break;
  }
  throw new ForgeError("odd", `${first.host} leads from one address to the next for a log.`);
}

/** A JSON client for one forge. */
export function createForgeClient(deps: ForgeClientDeps) {
  const { host, addressOf, isOurs, read, send, tail } = createRequests(deps);

  /** Reads all pages that the forge links to, up to `most`. */
  async function pages<T>(schema: z.ZodType<T>, path: string, query: Query = {}, how: Paging = {}): Promise<T[]> {
    const { sizeName = "per_page", most = MOST_PAGES } = how;
    const all: T[] = [];
    let url: URL | undefined = addressOf(path, { [sizeName]: PAGE, ...query });
    for (let page = 0; url !== undefined && page < most; page += 1) {
      const answer: Answer = await read(url);
      all.push(parsed(schema, answer.text, host));
      const next: string | undefined = /<([^<>]{1,2000})>;\s{0,3}rel="next"/.exec(answer.headers.get("link") ?? "")?.[1];
      url = next === undefined ? undefined : new URL(next, url);
      if (url !== undefined && !isOurs(url)) url = undefined;
    }
    return all;
  }

  return {
    pages,
    host,
    tail,
    async get<T>(schema: z.ZodType<T>, path: string, query?: Query): Promise<T> {
      return parsed(schema, (await read(addressOf(path, query))).text, host);
    },
    async list<T>(schema: z.ZodType<T>, path: string, query?: Query, how?: Paging): Promise<T[]> {
      // Gitea returns null for an empty list.
      return (await pages(schema.array().nullable(), path, query, how)).flatMap((page) => page ?? []);
    },
    async send<T>(schema: z.ZodType<T>, method: "POST" | "PATCH" | "PUT", path: string, body: unknown): Promise<T> {
      return parsed(schema, (await send(method, path, body)).text, host);
    },
  };
}
export type ForgeClient = ReturnType<typeof createForgeClient>;

function limited(signal: AbortSignal | undefined): AbortSignal {
  const timeout = AbortSignal.timeout(REQUEST_MS);
  return signal ? AbortSignal.any([signal, timeout]) : timeout;
}

async function endOf(response: Response): Promise<string> {
  let tail = "";
  let read = 0;
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    read += (chunk as Uint8Array).length;
    tail = (tail + decoder.decode(chunk as Uint8Array, { stream: true })).slice(-LOG_TAIL);
    if (read > LONGEST_LOG) break;
  }
  return tail;
}

/** How many milliseconds the forge asks to wait; undefined if waiting would change nothing. */
function waitOf({ status, headers, text }: Answer, now: number): number | undefined {
  if (status !== 429 && status !== 403) return undefined;
  const after = retryAfter(headers, now);
  if (after !== undefined) return after;
  if (headers.get("x-ratelimit-remaining") === "0") {
    const reset = Number(headers.get("x-ratelimit-reset"));
    return Number.isFinite(reset) ? Math.max(1_000, reset * 1_000 - now) : 60_000;
  }
  return status === 429 || /secondary rate limit|abuse detection/i.test(text.slice(0, 2_000)) ? 60_000 : undefined;
}

/** Parses `Retry-After`, which is a number of seconds or a date, into milliseconds from now. */
function retryAfter(headers: Headers, now: number): number | undefined {
  const given = headers.get("retry-after")?.trim();
  if (!given) return undefined;
  const ms = /^\d{1,9}$/.test(given) ? Number(given) * 1_000 : Date.parse(given) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function refusal(answer: Answer, { url, host, now }: { url: URL; host: string; now: number }): ForgeError {
  const said = oneLine(messageIn(answer.text), 600);
  const because = said === "" ? "" : `: ${said}`;
  const { status } = answer;
  const wait = waitOf(answer, now) ?? (status === 503 ? retryAfter(answer.headers, now) : undefined);
  if (wait !== undefined) {
    const retryAt = now + wait;
    return new ForgeError("limited", `${host} takes no more requests until ${new Date(retryAt).toISOString()}${because}`, {
      retryAt,
    });
  }
  if (status === 401)
    return new ForgeError("unauthorized", `${host} does not accept the token${because}. It may have expired: make a new one.`);
  if (status === 403) return new ForgeError("forbidden", `${host} does not allow this to the token${because}`);
  if (status === 404 || status === 410)
    return new ForgeError("missing", `${host} has no ${url.pathname}, or does not show it to this token.`);
  if (status === 405 || status === 409 || status === 422)
    return new ForgeError("invalid", `${host} refused the request${because}`);
  return new ForgeError(status >= 500 ? "unreachable" : "odd", `${host} answered ${status}${because}`);
}

/** The forge's own error message with its details. */
function messageIn(text: string): string {
  try {
    const { message, errors } = JSON.parse(text) as { message?: unknown; errors?: unknown };
    const details = (Array.isArray(errors) ? errors : []).flatMap((each: unknown) => {
      if (typeof each === "string") return [each];
      const said = (each as { message?: unknown } | null)?.message;
      return typeof said === "string" ? [said] : [];
    });
    return [typeof message === "string" ? message : "", ...details].filter(Boolean).join("; ");
  } catch {
    // Not JSON: an error page of a proxy, or an empty body.
    return text.slice(0, 200);
  }
}

function parsed<T>(schema: z.ZodType<T>, text: string, host: string): T {
  let value: unknown;
  try {
    value = text === "" ? undefined : JSON.parse(text);
  } catch (error) {
    throw new ForgeError("odd", `${host} answered with something that is no JSON. Is its address right?`, { cause: error });
  }
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  throw new ForgeError("odd", `${host} answered with something unexpected at ${issue?.path.join(".") || "the top"}.`, {
    cause: read.error,
  });
}

const unreachable = (base: URL, cause: unknown) =>
  new ForgeError("unreachable", `${base.host} cannot be reached (${oneLine(reasonOf(cause), 200)}).`, { cause });

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "no answer";
  const code = (error.cause as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : error.name === "TimeoutError" ? "no answer in time" : error.message;
}

/** Whether the error proves that the request never arrived. */
function wasNotSent(error: unknown): boolean {
  const code = error instanceof Error ? (error.cause as { code?: unknown } | undefined)?.code : undefined;
  return typeof code === "string" && /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CERT_|ERR_TLS)/.test(code);
}
