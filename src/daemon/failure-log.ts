import type { Log } from "../lib/log.ts";
import type { Hub } from "../store/hub.ts";
import type { Rooms } from "./build.ts";

/** How many of the latest runs are looked at, as they are when they are taken up. */
const LATEST_RUNS = 100;

/** Leaves a line for every message and task that fails. What was said in it stays out of the log. */
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

/** Leaves a line for everything that an earlier life did not finish; to be called before it is taken up. */
export function logRecoveries({ messages, squads, swarm }: Rooms, log: Log): void {
  const running = <T extends { status: string }>(items: readonly T[]) => items.filter(({ status }) => status === "running");
  for (const { id, conversation, attempts } of running(messages.open()))
    log.warn("a message was interrupted and is taken up again", { id, conversation, attempts });
  for (const { id, squad, agent, attempts } of squads.tasks({ status: "running", limit: LATEST_RUNS }))
    log.warn("a task was interrupted and is taken up again", { id, squad, agent, attempts });
  for (const { id } of swarm.orphans(LATEST_RUNS)) log.warn("a run was interrupted and is taken up again", { id });
}
