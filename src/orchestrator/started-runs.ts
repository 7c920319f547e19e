import { z } from "zod";
import { readJson } from "../store/read-json.ts";
import type { State } from "../store/state.ts";

/** Which runs a message set going, for the record of how it was routed. */
export function createStartedRuns(state: State) {
  const key = (messageId: string) => `runs:${messageId}`;
  const of = (messageId: string): string[] => readJson(z.array(z.string()), state.get(key(messageId))) ?? [];
  return { of, add: (messageId: string, runId: string) => state.set(key(messageId), JSON.stringify([...of(messageId), runId])) };
}
