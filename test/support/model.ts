import { onTestFinished } from "vitest";
import { type ModelServer, startModelServer } from "../../src/engine/rehearsal/server.ts";
import { type ChatRequest, type Model, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { AtTheEnd } from "./home.ts";

/** A scripted model on loopback, gone when the test is over. */
export async function scriptedModel(
  model: Model,
  options?: { models?: string[] },
  atTheEnd: AtTheEnd = onTestFinished,
): Promise<ModelServer> {
  const server = await startModelServer(model, options);
  atTheEnd(() => server.close());
  return server;
}

/** The text of the last thing the user said in a request. */
export function lastUserText(request: ChatRequest): string {
  return textOf(request.messages.findLast((message) => message.role === "user"));
}

/** Whether the model is being shown the result of a tool. */
export function isAfterTool(request: ChatRequest): boolean {
  return request.messages.at(-1)?.role === "tool";
}
