import { Activity, Origin } from "../protocol/squads.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

type Row = Record<string, string | number | null>;

/** The activity of each task, and who else asked for it. */
export function createTaskActivity(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare(
    "INSERT INTO task_activity (task_id, kind, summary, data, created_at) VALUES (?, ?, ?, ?, ?) RETURNING *",
  );
  const list = db.prepare("SELECT * FROM task_activity WHERE task_id = ? AND id > ? ORDER BY id LIMIT ?");
  const latest = db.prepare("SELECT * FROM task_activity WHERE task_id = ? ORDER BY id DESC LIMIT ?");
  const ask = db.prepare("INSERT OR IGNORE INTO task_askers (task_id, conversation, message_id, origin) VALUES (?, ?, ?, ?)");
  const askers = db.prepare("SELECT origin FROM task_askers WHERE task_id = ? ORDER BY conversation, message_id");
  const ofMessage = db.prepare("SELECT DISTINCT task_id AS id FROM task_askers WHERE message_id = ? ORDER BY task_id");
  return {
    add: (taskId: string, kind: Activity["kind"], summary: string, data?: Record<string, unknown>): Activity =>
      store.soft(() =>
        toActivity(
          insert.get(taskId, kind, summary, data === undefined ? null : JSON.stringify(data), now().toISOString()) as Row,
        ),
      ),
    /** Oldest first, after the given id. */
    of: (taskId: string, { after = 0, limit = 500 } = {}): Activity[] =>
      (list.all(taskId, after, limit) as unknown as Row[]).map(toActivity),
    last: (taskId: string, count: number): Activity[] =>
      (latest.all(taskId, count) as unknown as Row[]).map(toActivity).reverse(),
    /** Records that this conversation asked for it too. */
    ask: (taskId: string, origin: Origin) =>
      void ask.run(taskId, origin.conversation, origin.messageId ?? "", JSON.stringify(origin)),
    /** Everybody who asked, each conversation once. */
    askers(taskId: string): Origin[] {
      const origins = (askers.all(taskId) as { origin: string }[]).flatMap((row) => readJson(Origin, row.origin) ?? []);
      return [...new Map(origins.map((origin) => [origin.conversation, origin])).values()];
    },
    /** The tasks that a message asked for. */
    tasksOf: (messageId: string): string[] => (ofMessage.all(messageId) as { id: string }[]).map((row) => row.id),
  };
}
export type TaskActivity = ReturnType<typeof createTaskActivity>;

function toActivity(row: Row): Activity {
  return Activity.parse({
    id: row.id,
    kind: row.kind,
    summary: row.summary,
    data: readJson(Activity.shape.data, row.data) ?? null,
    createdAt: row.created_at,
  });
}
