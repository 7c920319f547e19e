import { ExitCode, UserError } from "../lib/errors.ts";
import type { ApiError } from "../protocol/api.ts";
import { EXIT_CODE_HEADER } from "../protocol/errors.ts";
import type { Event } from "../protocol/events.ts";
import type { Attachment, Message, NewMessage } from "../protocol/messages.ts";
import { type AskOptions, ask } from "./ask.ts";
import { type Call, type ConnectionDeps, openConnection } from "./connection.ts";
import { type FollowOptions, followEvents } from "./events.ts";

/** The HTTP API for clients on this machine. */
export interface Client {
  /** The daemon's address at the latest request. */
  readonly url: string;
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Uploads a file, to be attached to a message. */
  upload(name: string, bytes: Uint8Array): Promise<Attachment>;
  /** Creates something; `isNew` is false if it already existed. */
  make<T>(path: string, body: unknown): Promise<{ document: T; isNew: boolean }>;
  /** Events as they happen, until the signal ends the stream. */
  events(options: FollowOptions): AsyncGenerator<Event>;
  /** Sends a message and follows it to its end. */
  ask(message: NewMessage, options?: AskOptions): Promise<Message>;
}

/** Throws, with what to do, if no daemon runs. */
export function connect(deps: ConnectionDeps): Client {
  const connection = openConnection(deps);
  async function send<T>(method: string, path: string, body?: unknown): Promise<{ document: T; status: number }> {
    const isMessage = method === "POST" && /^\/api\/messages(?:\?|$)/.test(path) && deps.folder !== undefined;
    const told = isMessage ? { folder: deps.folder, ...(body as NewMessage) } : body;
    const json = told === undefined ? {} : { body: JSON.stringify(told), headers: { "content-type": "application/json" } };
    return answerTo<T>(path, { method, ...json });
  }
  async function answerTo<T>(path: string, call: Call): Promise<{ document: T; status: number }> {
    const response = await connection.call(path, call);
    const answer = await readJson(response.body);
    if (response.status < 200 || response.status > 299)
      throw refusal(response.status, answer as ApiError | undefined, Number(response.body.headers[EXIT_CODE_HEADER]));
    return { document: answer as T, status: response.status };
  }
  const client: Client = {
    get url() {
      return connection.url();
    },
    request: async <T>(method: string, path: string, body?: unknown) => (await send<T>(method, path, body)).document,
    async upload(name, bytes) {
      const headers = { "content-type": "application/octet-stream", "x-filename": encodeURIComponent(name) };
      return (await answerTo<Attachment>("/api/files", { method: "POST", headers, body: bytes })).document;
    },
    async make<T>(path: string, body: unknown) {
      const { document, status } = await send<T>("POST", path, body);
      return { document, isNew: status === 201 };
    },
    events: (options) => followEvents(connection, options),
    ask: (message, options) => ask(client, message, options),
  };
  return client;
}

/** Undefined if the body is not JSON, as from a proxy in between. */
async function readJson(body: AsyncIterable<Uint8Array>): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** The daemon's error as a `UserError`. A bad request is a usage error of whoever typed it. */
function refusal(status: number, answer: ApiError | undefined, told: number): UserError {
  const { code, message = `The daemon answered ${status}.` } = answer?.error ?? {};
  const known = Object.values(ExitCode).find((each) => each === told);
  // With an exit code from the daemon, the error is the same as it would have been in this process.
  if (known !== undefined && status === 400) return new UserError(message, { exitCode: known });
  const exitCode = known ?? (status === 400 ? ExitCode.usage : ExitCode.failed);
  return new UserError(message, { ...(code && { code }), exitCode });
}
