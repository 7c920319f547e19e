import { onTestFinished } from "vitest";
import type { ClusterAccess } from "../../../src/workers/jobs/nats/connection.ts";
import { connectTo } from "../../../src/workers/jobs/nats/connection.ts";
import { createLink } from "../../../src/workers/jobs/nats/link.ts";
import type { AnswerTo } from "../../../src/workers/jobs/nats/messages.ts";
import { until } from "../until.ts";

/** A client with a worker's keys that can send anything, in any order. */
export async function hostileHands(access: ClusterAccess, daemon: string) {
  const connection = await connectTo(access);
  onTestFinished(() => connection.close());
  const link = createLink({ connection, access, daemon });
  const ask = async (kind: string, data: object, bytes?: Uint8Array) => {
    const answered = await link.ask(kind, data, { timeoutMs: 10_000, ...(bytes && { bytes }) });
    return typeof answered === "string" ? answered : answered.data;
  };
  const held: string[] = [];
  return {
    ...{ connection, link, ask },
    /** Waits for the next job and accepts it. */
    async take() {
      const asked = async () => ((await ask("next", { held })) as AnswerTo<"next">).grant ?? undefined;
      const grant = await until("a job", asked, 60_000);
      held.push(grant.attempt.lease);
      await ask("beat", { lease: grant.attempt.lease });
      return { ...grant, lease: grant.attempt.lease };
    },
    /** Fetches all bytes of a blob, as far as the daemon sends them. */
    async fetch(lease: string, name: string): Promise<Buffer> {
      const pieces: Uint8Array[] = [];
      for (let at = 0; ; ) {
        const answered = await link.ask("get", { lease, name, at });
        if (typeof answered === "string" || answered.bytes.length === 0) return Buffer.concat(pieces);
        pieces.push(answered.bytes);
        at += answered.bytes.length;
      }
    },
  };
}
export type HostileHands = Awaited<ReturnType<typeof hostileHands>>;
