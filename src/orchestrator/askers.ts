import type { Source } from "../protocol/messages.ts";
import type { Origin } from "../protocol/squads.ts";
import type { Messages } from "../store/messages.ts";
import type { OutboxRows } from "../store/outbox.ts";
import type { StartedRuns } from "./started-runs.ts";

export interface AskersDeps {
  messages: Messages;
  owed: OutboxRows;
  startedRuns: StartedRuns;
  /** The source that gets the replies of a schedule. */
  sourceOfSchedule: (id: string) => Source | undefined;
}

/** Finds who originally asked. The result of a task or run arrives as a message, but its answer is for them. */
export function createAskers({ messages, owed, startedRuns, sourceOfSchedule }: AskersDeps) {
  const nobody: Source = { channel: "api" };
  function ofMessage(id: string | undefined): Source {
    const message = id === undefined ? undefined : messages.find(id);
    if (!message) return nobody;
    const { source, conversation } = message;
    if (source.channel === "schedule") return sourceOfSchedule(source.name) ?? nobody;
    return source.channel === "background" ? (owed.sourceOf(source.about, conversation) ?? nobody) : source;
  }
  const ofRun = (runId: string): Source => ofMessage(startedRuns.askerOf(runId));
  return {
    ofMessage,
    ofRun,
    ofSchedule: (id: string): Source => sourceOfSchedule(id) ?? nobody,
    /** The channel that requested a run, for the usage records. */
    sourceOfRun: (runId: string): string => (startedRuns.isOfCommand(runId) ? "cli" : ofRun(runId).channel),
    /** The origin of work that is done for a message. */
    originOf: (messageId: string): Origin => ({
      conversation: messages.find(messageId)?.conversation ?? "main",
      source: ofMessage(messageId),
      messageId,
    }),
  };
}
export type Askers = ReturnType<typeof createAskers>;
