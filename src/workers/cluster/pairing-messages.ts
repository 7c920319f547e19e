import { z } from "zod";
import { WorkerCapacity, WorkerLabels, WorkerName } from "../../protocol/workers.ts";

/** What a worker that asks for admission reports of itself. */
export const PairRequest = z.object({
  name: WorkerName,
  publicKey: z.string().max(100),
  labels: WorkerLabels,
  capacity: WorkerCapacity,
  version: z.string().max(100),
  protocol: z.number().int(),
});
export type PairRequest = z.infer<typeof PairRequest>;

/** The answer: everything the worker needs besides its own key. */
export const PairAnswer = z.object({
  servers: z.array(z.string()).min(1),
  /** Whether the daemon adds the key to the server; the owner of a foreign server must add it. */
  managed: z.boolean(),
  /** The daemon's public key: the worker obeys only what this key has signed. */
  daemon: z.string().length(56),
});
export type PairAnswer = z.infer<typeof PairAnswer>;

/** A text, and the proof that its sender has the code. */
export const Proven = z.object({ text: z.string().max(100_000), proof: z.string().max(200) });
/** Gives no reason: wrong, used, expired and unknown invitations look alike from outside. */
export const Refused = z.object({ refused: z.literal(true) });
/** A reason, for a worker that has proven to have the code. */
export const Declined = z.object({ declined: z.string().max(1_000) });

export const REFUSED_WORDS =
  'The invitation was refused: the code is wrong, or it was used already, or it is older than ten minutes. Make a new one with "io worker invite" on the other host.';
