import type { Store } from "./open.ts";

/** How many of the latest messages are examined. */
const LATEST_MESSAGES = 5_000;

/** When each channel last received a message, among the latest ones. */
export function createLastHeard({ db }: Store): () => Map<string, string> {
  const latest = db.prepare(
    `SELECT channel, created_at AS at
     FROM (SELECT json_extract(source, '$.channel') AS channel, max(seq) AS last
           FROM (SELECT source, seq FROM messages ORDER BY seq DESC LIMIT ${LATEST_MESSAGES}) GROUP BY 1)
     JOIN messages ON messages.seq = last`,
  );
  return () => new Map((latest.all() as { channel: string; at: string }[]).map(({ channel, at }) => [channel, at]));
}
