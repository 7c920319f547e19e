import type { Log } from "../lib/log.ts";
import { Message } from "../protocol/messages.ts";
import { Task } from "../protocol/squads.ts";
import type { Hub } from "../store/hub.ts";
import type { Rooms } from "./build.ts";

const Failed = Message.pick({ id: true, conversation: true, error: true });
const FailedTask = Task.pick({ id: true, squad: true, agent: true, error: true });
/** How many of the latest runs are looked at, as they are when they are taken up. */
const LATEST_RUNS = 100;

/** Leaves a line for every message and task that fails. What was said in it stays out of the log. */
export function logFailures(hub: Hub, log: Log): () => void {
  return hub.subscribe(({ type, data }) => {
    if (data.status !== "failed") return;
    if (type === "message.finished") {
      const { id, conversation, error } = Failed.parse(data);
      log.warn("a message failed", { id, conversation, code: error?.code });
    }
    if (type === "task.finished") {
      const { id, squad, agent, error } = FailedTask.parse(data);
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
