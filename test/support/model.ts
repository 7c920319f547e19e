import { onTestFinished } from "vitest";
import { type ModelServer, startModelServer } from "../../src/engine/rehearsal/server.ts";
import { type ChatRequest, type Model, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { AtTheEnd } from "./home.ts";

/** Starts a scripted model on loopback. It is closed after the test. */
export async function scriptedModel(
  model: Model,
  options?: { models?: string[] },
  atTheEnd: AtTheEnd = onTestFinished,
): Promise<ModelServer> {
  const server = await startModelServer(model, options);
  atTheEnd(() => server.close());
  return server;
}

/** The text of the last user message in a request. */
export function lastUserText(request: ChatRequest): string {
  return textOf(request.messages.findLast((message) => message.role === "user"));
}

/** Whether the request ends with a tool result. */
export function isAfterTool(request: ChatRequest): boolean {
  return request.messages.at(-1)?.role === "tool";
}
