import type { Source } from "../protocol/messages.ts";
import type { Origin } from "../protocol/squads.ts";
import type { Messages } from "../store/messages.ts";
import type { OutboxRows } from "../store/outbox.ts";
import type { StartedRuns } from "./started-runs.ts";

export interface AskersDeps {
  messages: Messages;
  owed: OutboxRows;
  startedRuns: StartedRuns;
}

/** Who asked first. What comes back from a task or a run is a message too, but its answer is for them. */
export function createAskers({ messages, owed, startedRuns }: AskersDeps) {
  const nobody: Source = { channel: "api" };
  function ofMessage(id: string | undefined): Source {
    const message = id === undefined ? undefined : messages.find(id);
    if (!message) return nobody;
    const { source, conversation } = message;
    return source.channel === "background" ? (owed.sourceOf(source.about, conversation) ?? nobody) : source;
  }
  return {
    ofMessage,
    ofRun: (runId: string): Source => ofMessage(startedRuns.askerOf(runId)),
    /** For what is done on behalf of a message. */
    originOf: (messageId: string): Origin => ({
      conversation: messages.find(messageId)?.conversation ?? "main",
      source: ofMessage(messageId),
      messageId,
    }),
  };
}
export type Askers = ReturnType<typeof createAskers>;
