import { availableParallelism, hostname } from "node:os";
import { runWorker } from "../daemon/worker.ts";
import { ensureHome } from "../home/paths.ts";
import { UserError, usageError } from "../lib/errors.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { explainIssues } from "../lib/validation.ts";
import { packageVersion } from "../lib/version.ts";
import { WorkerCapacity, WorkerLabels, WorkerName } from "../protocol/workers.ts";
import { readInviteUrl } from "../workers/cluster/invitation.ts";
import { joinCluster } from "../workers/cluster/join.ts";
import { workerUser } from "../workers/cluster/rights.ts";
import { readWorkerFile, writeWorkerFile } from "../workers/cluster/worker-file.ts";
import type { Json, Shell } from "./output.ts";

export interface JoinOptions extends Json {
  code?: string;
  name?: string;
  labels?: string;
  capacity?: string;
  ca?: string;
}

/** Joins the cluster if necessary, then works until it is stopped. */
export async function joinAndWork(shell: Shell, url: string | undefined, options: JoinOptions): Promise<void> {
  const { paths } = shell;
  ensureHome(paths);
  const known = readWorkerFile(paths.worker);
  if (!known && url === undefined)
    throw usageError('This home has not joined yet. Give the url and the code that "io worker invite" prints on the other host.');
  const file = known ?? (await joinAnew(shell, url ?? "", options));
  const { name, servers } = file.access;
  if (known && url !== undefined) shell.note(`This home joined before, as ${name}; the invitation was not needed.`);
  shell.print({ name, servers, labels: file.labels, capacity: file.capacity }, `Joined as ${name}.`, options);
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stopping.abort());
  await runWorker({ env: shell.env, file, note: shell.note, signal: stopping.signal });
}

async function joinAnew(shell: Shell, url: string, options: JoinOptions) {
  const code = options.code ?? shell.env.IO_WORKER_CODE;
  if (!code) throw usageError('--code is missing: "io worker invite" prints it beside the url.');
  const name = checked(WorkerName, options.name ?? nameOfHost(), "--name");
  const labels = checked(WorkerLabels, options.labels?.split(",").filter(Boolean) ?? [], "--labels");
  const capacity = checked(WorkerCapacity, Number(options.capacity ?? availableParallelism()), "--capacity");
  const ca = options.ca === undefined ? undefined : smallTextAt(options.ca, 100_000);
  if (options.ca !== undefined && ca === undefined) throw usageError(`--ca: ${options.ca} is no file that can be read.`);
  const invitation = readInviteUrl(url);
  const version = packageVersion();
  const { access, daemon, keyToAdd } = await joinCluster({
    invitation,
    code,
    name,
    labels,
    capacity,
    version,
    ...(ca && { ca }),
  });
  const file = { access, daemon, labels, capacity };
  writeWorkerFile(shell.paths.worker, file);
  if (keyToAdd !== null) {
    const user = JSON.stringify(workerUser({ publicKey: keyToAdd, name }));
    throw new UserError(
      `Joined as ${name}. The server is one of your own, so its keeper has to let this worker in: add this to the users of its configuration and reload it, then run "io worker join" here.\n${user}`,
    );
  }
  return file;
}

function checked<T>(
  schema: {
    safeParse(value: unknown): { success: true; data: T } | { success: false; error: Parameters<typeof explainIssues>[0] };
  },
  value: unknown,
  option: string,
): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw usageError(`${option}: ${JSON.stringify(value)} is not allowed: it ${explainIssues(result.error)}.`);
}

/** This host's name as a valid worker name. */
function nameOfHost(): string {
  const plain = hostname()
    .toLowerCase()
    .split(".")[0]
    ?.replace(/[^a-z0-9-]/g, "-")
    .replace(/^-+/, "")
    .slice(0, 40);
  return plain || "worker";
}
