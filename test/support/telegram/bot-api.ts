import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { AtTheEnd } from "../home.ts";
import { createChats, type Payload, Refused, type Shown } from "./chats.ts";
import { createFaults, type Fault, failWith, refuse } from "./faults.ts";
import { createUpdates } from "./updates.ts";

export const BOT_TOKEN = "7000000001:AAE-scripted_bot-token_0123456789abcdef";
const BOT = { id: 7_000_000_001, is_bot: true, first_name: "IO", username: "io_test_bot" };
const MAX_FILE = 20 * 1024 * 1024;

/** How far a call has come: received, carried out, answered. */
export type Stage = "asked" | "done" | "answered";

export interface Call {
  method: string;
  payload: Payload;
  at: number;
}

/** Starts a Bot API server on loopback with the same checks as Telegram's. */
export async function startBotApi(atTheEnd: AtTheEnd = onTestFinished) {
  const chats = createChats();
  const faults = createFaults();
  const queries = new Set<string>();
  const updates = createUpdates((update) => {
    const { message, edited_message, callback_query } = update as Partial<Record<string, { id?: string; chat?: { id: number } }>>;
    const chat = (message ?? edited_message)?.chat?.id;
    if (chat !== undefined) chats.met.add(chat);
    if (callback_query?.id !== undefined) queries.add(callback_query.id);
  });
  const files = new Map<string, { path: string; content: Buffer; size?: number }>();
  const calls: Call[] = [];
  const answers = new Map<string, { text?: string; alert: boolean }>();
  const held = { perSecond: 0, webhook: false };
  /** Called at each stage of a call. Returns true if it has killed the caller, which then gets no answer. */
  const watch: { each: (method: string, stage: Stage, result?: unknown) => boolean | Promise<boolean> } = { each: () => false };

  function run(method: string, payload: Payload, document?: Shown["document"]): unknown {
    switch (method) {
      case "getMe":
        return { ...BOT, has_topics_enabled: chats.state.topicsEnabled, can_join_groups: false };
      case "sendMessage":
        return toMessage(chats.send(payload));
      case "sendDocument":
        if (!document) throw new Refused("there is no document in the request");
        return toMessage(chats.send(payload, document));
      case "editMessageText":
        return toMessage(chats.edit(payload, "text"));
      case "editMessageReplyMarkup":
        return toMessage(chats.edit(payload, "markup"));
      case "deleteMessage":
        return chats.remove(payload);
      case "pinChatMessage":
        return chats.pin(payload);
      case "sendMessageDraft":
        return chats.draft(payload);
      case "createForumTopic":
        return chats.createTopic(payload);
      case "answerCallbackQuery": {
        const id = String(payload.callback_query_id);
        if (answers.has(id) || !queries.has(id))
          throw new Refused("query is too old and response timeout expired or query ID is invalid");
        const text = payload.text === undefined ? undefined : String(payload.text);
        if ((text?.length ?? 0) > 200) throw new Refused("MESSAGE_TOO_LONG");
        answers.set(id, { ...(text !== undefined && { text }), alert: payload.show_alert === true });
        return true;
      }
      case "getFile": {
        const file = files.get(String(payload.file_id));
        if (!file) throw new Refused("wrong file_id or the file is temporarily unavailable");
        if ((file.size ?? file.content.length) > MAX_FILE) throw new Refused("file is too big");
        return {
          file_id: payload.file_id,
          file_unique_id: `u${String(payload.file_id)}`,
          file_size: file.content.length,
          file_path: file.path,
        };
      }
      case "setMessageReaction":
        return chats.react(payload);
      case "setMyCommands":
        for (const { command, description } of payload.commands as { command: string; description: string }[]) {
          if (!/^[a-z0-9_]{1,32}$/.test(command)) throw new Refused("BOT_COMMAND_INVALID");
          if (description.length < 1 || description.length > 256) throw new Refused("BOT_COMMAND_DESCRIPTION_INVALID");
        }
        return true;
      case "sendChatAction":
      case "unpinChatMessage":
        return true;
      default:
        throw new Refused("method not found", 404);
    }
  }

  function flooded(method: string, chat: unknown): boolean {
    if (held.perSecond === 0 || !/^(?:send|edit)/.test(method)) return false;
    const since = Date.now() - 1_000;
    const recent = calls.filter((call) => call.at > since && call.payload.chat_id === chat && /^(?:send|edit)/.test(call.method));
    return recent.length > held.perSecond;
  }

  async function answer(method: string, payload: Payload, document: Shown["document"], response: ServerResponse): Promise<void> {
    calls.push({ method, payload, at: Date.now() });
    if (await watch.each(method, "asked")) return;
    const fault = faults.due(method);
    if (fault?.kind === "slow") await new Promise((later) => setTimeout(later, fault.ms));
    else if (fault && !("done" in fault && fault.done)) return failWith(fault, response);
    if (flooded(method, payload.chat_id)) return failWith({ kind: "flood", retryAfter: 1 }, response);
    try {
      const result = method === "getUpdates" ? await poll(payload, response) : run(method, payload, document);
      if (result === undefined) return;
      if (fault && fault.kind !== "slow") return failWith(fault, response);
      if (await watch.each(method, "done", result)) return;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ok: true, result }), () => void watch.each(method, "answered", result));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refuse(response, error.code, error.message);
    }
  }

  /** Undefined if it has already sent an error. */
  async function poll(payload: Payload, response: ServerResponse): Promise<unknown[] | undefined> {
    if (held.webhook) {
      refuse(
        response,
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      );
      return undefined;
    }
    const taken = await updates.take({
      offset: Number(payload.offset ?? 0),
      limit: Math.min(100, Math.max(1, Number(payload.limit ?? 100))),
      allowed: payload.allowed_updates as string[] | undefined,
      timeoutMs: Number(payload.timeout ?? 0) * 1_000,
      gone: (left) => response.once("close", left),
    });
    if (taken !== "another") return taken;
    refuse(response, 409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running");
    return undefined;
  }

  const server = createServer((request, response) => {
    void serve(request, response).catch((error: unknown) => {
      if (!response.headersSent) refuse(response, 500, `the stand-in is broken: ${String(error)}`);
    });
  });
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname);
    const [, isFile, token, rest = ""] = /^\/(file\/)?bot([^/]+)\/(.*)$/.exec(path) ?? [];
    const body = await bodyOf(request);
    if (token === undefined || !/^\d+:[\w-]{30,}$/.test(token)) return void refuse(response, 404, "Not Found");
    if (token !== BOT_TOKEN) return refuse(response, 401, "Unauthorized");
    if (isFile) return download(rest, response);
    const { payload, document } = readPayload(request, body);
    await answer(rest, payload, document, response);
  }
  function download(path: string, response: ServerResponse): void {
    const fault = faults.due("file");
    if (fault) return void failWith(fault, response);
    const file = [...files.values()].find((each) => each.path === path);
    if (!file) return void refuse(response, 404, "Not Found");
    response.writeHead(200, { "content-type": "application/octet-stream" });
    response.end(file.content);
  }

  const listen = (port: number) => new Promise<void>((ready) => server.listen(port, "127.0.0.1", ready));
  const stop = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      server.closeAllConnections();
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  atTheEnd(() => (server.listening ? stop() : undefined));
  return {
    url: `http://127.0.0.1:${port}`,
    ...{ calls, faults, updates, files, chats, held, answers, watch },
    /** The bot's messages in a chat as they read now, oldest first. */
    shown: (chat: number): Shown[] => chats.shown.filter((each) => each.chat === chat),
    fail: (method: string, fault: Fault, times?: number) => faults.next(method, fault, times),
    down: stop,
    up: () => listen(port),
  };
}
export type BotApi = Awaited<ReturnType<typeof startBotApi>>;

function toMessage({ message_id, chat, thread, text, entities }: Shown): Record<string, unknown> {
  return {
    message_id,
    ...(thread !== undefined && { message_thread_id: thread, is_topic_message: true }),
    from: BOT,
    chat: { id: chat, type: chat < 0 ? "supergroup" : "private" },
    date: Math.floor(Date.now() / 1000),
    text,
    entities,
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function readPayload(request: IncomingMessage, body: Buffer): { payload: Payload; document?: Shown["document"] } {
  const type = request.headers["content-type"] ?? "";
  const boundary = /^multipart\/form-data; *boundary="?([^";]+)/.exec(type)?.[1];
  if (boundary === undefined) return { payload: body.length === 0 ? {} : (JSON.parse(body.toString()) as Payload) };
  const payload: Payload = {};
  let document: Shown["document"];
  // In latin1, every byte is one character.
  for (const part of body.toString("latin1").split(`--${boundary}`).slice(1, -1)) {
    const [head = "", ...rest] = part.split("\r\n\r\n");
    const content = Buffer.from(rest.join("\r\n\r\n").replace(/\r\n$/, ""), "latin1");
    const file = /filename="?([^";\r\n]+)/.exec(head)?.[1];
    const name = /[; ]name="([^"]*)"/.exec(head)?.[1] ?? "";
    const text = content.toString();
    if (file !== undefined) document = { name: file, content };
    else payload[name] = /^[[{]/.test(text) ? JSON.parse(text) : text;
  }
  return { payload, ...(document && { document }) };
}
