import type { Log } from "../lib/log.ts";
import type { Hub } from "../store/hub.ts";
import type { Rooms } from "./build.ts";

/** How many of the latest tasks and runs are checked. */
const LATEST_RUNS = 100;

/** Logs every message and task that fails, without its content. */
export function logFailures(hub: Hub, log: Log): () => void {
  return hub.subscribe((event) => {
    if (event.type === "message.finished" && event.data.status === "failed") {
      const { id, conversation, error } = event.data;
      log.warn("a message failed", { id, conversation, code: error?.code });
    }
    if (event.type === "task.finished" && event.data.status === "failed") {
      const { id, squad, agent, error } = event.data;
      log.warn("a task failed", { id, squad, agent, code: error?.code });
    }
  });
}

/** Logs everything that an earlier life did not finish; call this before it is resumed. */
export function logRecoveries({ messages, squads, swarm }: Rooms, log: Log): void {
  const running = <T extends { status: string }>(items: readonly T[]) => items.filter(({ status }) => status === "running");
  for (const { id, conversation, attempts } of running(messages.open()))
    log.warn("a message was interrupted and is taken up again", { id, conversation, attempts });
  for (const { id, squad, agent, attempts } of squads.tasks({ status: "running", limit: LATEST_RUNS }))
    log.warn("a task was interrupted and is taken up again", { id, squad, agent, attempts });
  for (const { id } of swarm.orphans(LATEST_RUNS)) log.warn("a run was interrupted and is taken up again", { id });
}
