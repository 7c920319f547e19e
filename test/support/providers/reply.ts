import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Wire } from "./act.ts";

/** An event of a stream. Data that is not a string is sent as JSON. */
export interface StreamEvent {
  event?: string;
  data: unknown;
}

/** What is sent to the client. */
export type Reply =
  | { kind: "json"; status: number; body: unknown; headers?: Record<string, string>; refusal?: string }
  | { kind: "text"; status: number; text: string; type: string }
  | {
      kind: "events";
      events: readonly StreamEvent[];
      wire: Wire;
      end: "end" | "reset" | "stall";
      headers?: Record<string, string>;
      refusal?: string;
    }
  | { kind: "hang" }
  | { kind: "reset" };

export async function send(reply: Reply, response: ServerResponse): Promise<void> {
  switch (reply.kind) {
    case "json":
      response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
      response.end(JSON.stringify(reply.body));
      return;
    case "text":
      response.writeHead(reply.status, { "content-type": reply.type });
      response.end(reply.text);
      return;
    case "hang":
      return;
    case "reset":
      response.socket?.resetAndDestroy();
      return;
    case "events":
      await stream(reply, response);
  }
}

async function stream(reply: Extract<Reply, { kind: "events" }>, response: ServerResponse): Promise<void> {
  const { wire, events, end } = reply;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...reply.headers });
  response.flushHeaders();
  for (const bytes of writesOf(events, wire)) {
    if (response.destroyed) return;
    await write(response, bytes);
    if (wire.splitCharacters) await nextTurn();
    if (wire.gapMs) await sleep(wire.gapMs);
  }
  if (end === "end") response.end();
  if (end === "reset") response.socket?.resetAndDestroy();
}

/** The bytes of a stream, with one write per event. If requested, each write ends inside a character. */
export function writesOf(events: readonly StreamEvent[], wire: Wire): Buffer[] {
  const writes: Buffer[] = [];
  let held = Buffer.alloc(0);
  for (const event of events) {
    const bytes = Buffer.concat([held, Buffer.from(textOf(event, wire))]);
    const at = wire.splitCharacters ? insideCharacter(bytes) : bytes.length;
    writes.push(Buffer.from(bytes.subarray(0, at)));
    held = Buffer.from(bytes.subarray(at));
  }
  return held.length > 0 ? [...writes, held] : writes;
}

function textOf({ event, data }: StreamEvent, wire: Wire): string {
  const newline = wire.crlf ? "\r\n" : "\n";
  const comments = (wire.comments ?? []).map((comment) => `: ${comment}${newline}${newline}`).join("");
  const lines = [
    ...(event === undefined ? [] : [`event: ${event}`]),
    `data: ${typeof data === "string" ? data : JSON.stringify(data)}`,
  ];
  return comments + lines.map((line) => line + newline).join("") + newline;
}

/** An offset inside the last multi-byte character, or the end. */
function insideCharacter(bytes: Buffer): number {
  const last = bytes.findLastIndex((byte) => byte >= 0xc0);
  return last === -1 ? bytes.length : last + 1;
}

function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  if (bytes.length === 0) return Promise.resolve();
  return new Promise((written) => response.write(bytes, () => written()));
}

/** Lets the bytes written so far leave as their own packet. */
function nextTurn(): Promise<void> {
  return new Promise((turn) => setImmediate(turn));
}
