import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Emit } from "../protocol/events.ts";
import type { Activity, Task } from "../protocol/squads.ts";
import type { TaskActivity } from "../store/task-activity.ts";

/** Records and announces what was seen of a task. */
export type NoteTask = (task: Task, kind: Activity["kind"], summary: string, data?: Record<string, unknown>) => void;

export function createTaskNotes({ activity, emit, log }: { activity: TaskActivity; emit: Emit; log: Log }): NoteTask {
  return (task, kind, summary, data) => {
    const { id, squad, agent, origin } = task;
    try {
      activity.add(id, kind, summary, data);
    } catch (error) {
      log.warn("a task's activity could not be written down", { id, error: messageOf(error) });
    }
    emit({ type: "task.progress", conversation: origin?.conversation, data: { ...data, id, squad, agent, kind, summary } });
  };
}
