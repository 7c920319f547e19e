import type { Steer } from "../protocol/turns.ts";
import type { Store } from "./open.ts";

/** Text that was added to a message's running turn. */
export interface SteerRow extends Steer {
  createdAt: string;
}

export function createSteerRows({ db }: Store, now: () => Date = () => new Date()) {
  const insert = db.prepare("INSERT INTO steers (message_id, text, created_at) VALUES (?, ?, ?)");
  const ofMessage = db.prepare(
    "SELECT seq, text, prompt_id AS promptId, created_at AS createdAt FROM steers WHERE message_id = ? ORDER BY seq",
  );
  const accepted = db.prepare("UPDATE steers SET prompt_id = ? WHERE seq = ?");
  return {
    add: (messageId: string, text: string) => void insert.run(messageId, text, now().toISOString()),
    /** In order. */
    of: (messageId: string) => ofMessage.all(messageId) as unknown as SteerRow[],
    /** Records the runtime's id of the prompt that carried it. */
    accepted: (seq: number, promptId: string) => void accepted.run(promptId, seq),
  };
}
export type SteerRows = ReturnType<typeof createSteerRows>;
