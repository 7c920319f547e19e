import { z } from "zod";
import { ClusterAccess } from "../dispatch/nats/connection.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { UserError } from "../lib/errors.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { WorkerCapacity, WorkerLabels } from "../protocol/workers.ts";
import { readJson } from "../store/read-json.ts";

/** Who this home is as a worker of another. */
export const WorkerFile = z.object({ access: ClusterAccess, labels: WorkerLabels, capacity: WorkerCapacity });
export type WorkerFile = z.infer<typeof WorkerFile>;

export function writeWorkerFile(path: string, file: WorkerFile): void {
  writeFileAtomic(path, `${JSON.stringify(file, null, 2)}\n`, 0o600);
}

/** Undefined where this home never joined. */
export function readWorkerFile(path: string): WorkerFile | undefined {
  const text = smallTextAt(path, 100_000);
  if (text === undefined) return undefined;
  const file = readJson(WorkerFile, text);
  if (!file)
    throw new UserError(`${path} is not what "io worker join" wrote. Move it away and join again with a new invitation.`);
  return file;
}
