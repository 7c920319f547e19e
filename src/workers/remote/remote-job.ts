import { setTimeout as sleep } from "node:timers/promises";
import type { SessionSpec } from "../../engine/port.ts";
import type { SandboxHeight } from "../../home/safety-config.ts";
import type { TurnRequest } from "../../protocol/turns.ts";
import type { Dispatcher, Job, JobEnd } from "../jobs/port.ts";
import { PROTOCOL } from "../jobs/port.ts";
import { type Answers, createAnswers } from "./answers.ts";
import type { RemoteCalls } from "./calls.ts";
import { CLOSING } from "./closing.ts";
import { applyResult, captureFiles, projectOf, releaseCommit, type Worktree } from "./code.ts";
import { InnerPath, type PlaceSpec } from "./job-messages.ts";

/** A folder whose work can be done here or on a worker. */
export interface RemoteFolder extends Worktree, Pick<PlaceSpec, "cwd" | "projectPath" | "access" | "height" | "installed"> {}

const MAX_ATTEMPTS = 5;
const LOOK_MS = 1_000;
/** The turn enforces its own time limit; it may also wait for a person. */
const CAP_MS = 14 * 86_400_000;

export interface RemoteJob {
  to: Dispatcher;
  place: RemoteFolder;
  id: string;
  pool: string;
  signal: AbortSignal;
  job: (place: PlaceSpec) => Pick<Job, "kind" | "spec">;
  silenceMs: number;
  /** The sandbox height that now applies to work that asks for at least this one. */
  height: (asked: SandboxHeight | undefined) => SandboxHeight;
  turn?: { spec: SessionSpec; request: TurnRequest; calls: RemoteCalls };
}

/** Submits a job, or finds it if it was submitted, and waits for its end; its result is then in the worktree. */
export async function runRemoteJob(live: Map<string, Answers>, remoteJob: RemoteJob): Promise<JobEnd | "closing" | "host gone"> {
  const { to, place, id, signal, job, silenceMs, height, turn } = remoteJob;
  const known = to.job(id);
  const pool = known?.pool ?? remoteJob.pool;
  const commit = (known?.spec.place as PlaceSpec | undefined)?.commit ?? (await captureFiles(place, id));
  const currentHeight = () => height(place.height ?? undefined);
  const isSandboxed = async (worker: string) => {
    const wall = (await to.workers()).find(({ name }) => name === worker)?.wall ?? "none";
    return wall !== "none";
  };
  const answers = createAnswers({
    worktree: place,
    commit,
    blobs: to.blobs,
    isSandboxed,
    height: currentHeight,
    ...(turn && { turn }),
  });
  live.set(id, answers);
  const over = new AbortController();
  const cancel = () => {
    if (signal.reason !== CLOSING) void to.cancel(id);
  };
  try {
    const { cwd, projectPath, access, installed, repo } = place;
    const where: PlaceSpec = {
      project: projectOf(repo),
      commit,
      prefix: repo.prefix,
      cwd,
      projectPath,
      access,
      height: currentHeight(),
      // A name that could lead outside is not installed on the worker.
      installed: installed.filter((name) => InnerPath.safeParse(name).success),
    };
    const limits = { leaseMs: to.leaseMs, silenceMs, capMs: CAP_MS, maxAttempts: MAX_ATTEMPTS };
    if (!known) await to.submit({ id, epoch: 1, pool, ...job(where), limits, protocol: PROTOCOL });
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    const end = await Promise.race([to.ended(id), closing(signal), hostGone(to, pool, over.signal)]);
    if (end === "host gone") await to.cancel(id);
    if (typeof end === "object" && end.state === "done") await applyResult(place, { id, commit }, end, to.blobs);
    if (end !== "closing") await releaseCommit(place, id);
    for (const { lease } of typeof end === "object" ? end.attempts : []) to.forgetBlobs(lease);
    return end;
  } finally {
    over.abort();
    signal.removeEventListener("abort", cancel);
    answers.end();
    live.delete(id);
  }
}

function closing(signal: AbortSignal): Promise<"closing"> {
  return new Promise((resolve) => {
    const look = () => signal.reason === CLOSING && resolve("closing");
    if (signal.aborted) look();
    else signal.addEventListener("abort", look, { once: true });
  });
}

/** Resolves when the job needs one host that has been away for longer than its lease. */
async function hostGone(to: Dispatcher, pool: string, over: AbortSignal): Promise<"host gone"> {
  const [, worker] = /^host-(.+)$/.exec(pool) ?? [];
  let missing = 0;
  while (worker !== undefined && !over.aborted) {
    await sleep(LOOK_MS, undefined, { ref: false });
    const seen = (await to.workers()).some(({ name, state }) => name === worker && state !== "lost" && state !== "draining");
    missing = seen ? 0 : missing + LOOK_MS;
    if (missing > to.leaseMs) return "host gone";
  }
  return new Promise(() => undefined);
}
