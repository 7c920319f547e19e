import { z } from "zod";
import { WorkerCapacity, WorkerLabels, WorkerName } from "../../protocol/workers.ts";

/** What a worker that wants to be let in says of itself. */
export const PairRequest = z.object({
  name: WorkerName,
  publicKey: z.string().max(100),
  labels: WorkerLabels,
  capacity: WorkerCapacity,
  version: z.string().max(100),
  protocol: z.number().int(),
});
export type PairRequest = z.infer<typeof PairRequest>;

/** What it is given: all it needs besides its own key. */
export const PairAnswer = z.object({
  servers: z.array(z.string()).min(1),
  /** Whether the server learns of the key by itself; on a server of one's own its keeper has to add it. */
  managed: z.boolean(),
  /** The daemon's public key: the worker obeys what this key has signed, and nothing else. */
  daemon: z.string().length(56),
});
export type PairAnswer = z.infer<typeof PairAnswer>;

/** A text, and the proof that it comes from somebody who has the code. */
export const Proven = z.object({ text: z.string().max(100_000), proof: z.string().max(200) });
/** No word of why: wrong, used, over and never given out look alike from outside. */
export const Refused = z.object({ refused: z.literal(true) });
/** A reason, for somebody who has proven to have the code. */
export const Declined = z.object({ declined: z.string().max(1_000) });

export const REFUSED_WORDS =
  'The invitation was refused: the code is wrong, or it was used already, or it is older than ten minutes. Make a new one with "io worker invite" on the other host.';
