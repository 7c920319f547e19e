import { z } from "zod";
import { readJson } from "../store/read-json.ts";
import type { State } from "../store/state.ts";

/** Which runs a message started, and which message started a run. */
export function createStartedRuns(state: State) {
  const key = (messageId: string) => `runs:${messageId}`;
  const of = (messageId: string): string[] => readJson(z.array(z.string()), state.get(key(messageId))) ?? [];
  return {
    of,
    add(messageId: string, runId: string): void {
      state.set(key(messageId), JSON.stringify([...of(messageId), runId]));
      state.set(`run-asker:${runId}`, messageId);
    },
    /** Records that the `swarm` command started a run. */
    addOfCommand: (runId: string): void => state.set(`run-source:${runId}`, "cli"),
    isOfCommand: (runId: string): boolean => state.get(`run-source:${runId}`) !== undefined,
    askerOf: (runId: string): string | undefined => state.get(`run-asker:${runId}`),
  };
}
export type StartedRuns = ReturnType<typeof createStartedRuns>;
