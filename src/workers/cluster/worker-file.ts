import { z } from "zod";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { UserError } from "../../lib/errors.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { WorkerCapacity, WorkerLabels } from "../../protocol/workers.ts";
import { readJson } from "../../store/read-json.ts";
import { ClusterAccess } from "../jobs/nats/connection.ts";
import { isUserKey } from "../jobs/nats/nkey.ts";

/** This home's identity as a worker of another. */
export const WorkerFile = z.object({
  access: ClusterAccess,
  /** The daemon's public key, received when joining. */
  daemon: z.string().refine(isUserKey, "must be a public key"),
  labels: WorkerLabels,
  capacity: WorkerCapacity,
});
export type WorkerFile = z.infer<typeof WorkerFile>;

export function writeWorkerFile(path: string, file: WorkerFile): void {
  writeFileAtomic(path, `${JSON.stringify(file, null, 2)}\n`, 0o600);
}

/** Undefined if this home never joined. */
export function readWorkerFile(path: string): WorkerFile | undefined {
  const text = smallTextAt(path, 100_000);
  if (text === undefined) return undefined;
  const file = readJson(WorkerFile, text);
  const older = file ? undefined : readJson(z.object({ access: ClusterAccess }), text);
  if (older)
    throw new UserError(
      `${path} was written by an earlier version of IO, which did not know the daemon's key. Run "io worker revoke ${older.access.name}" and "io worker invite" on the daemon's host, move the file away, and join again with the new invitation.`,
    );
  if (!file)
    throw new UserError(`${path} is not what "io worker join" wrote. Move it away and join again with a new invitation.`);
  return file;
}
