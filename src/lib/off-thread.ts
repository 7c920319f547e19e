import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { packageRoot } from "./package-root.ts";

export interface OffThreadOptions {
  deadlineMs: number;
  memoryMb?: number;
  /** Terminates the thread; the promise rejects with the signal's reason. */
  signal?: AbortSignal;
}

/**
 * Runs one job in a worker thread of its own, so that no input can block the event loop. Undefined if the job exceeded its
 * time or memory. `program` is an entry of the built package.
 */
export function offThread<T>(
  program: string,
  job: unknown,
  { deadlineMs, memoryMb = 128, signal }: OffThreadOptions,
): Promise<T | undefined> {
  const worker = new Worker(join(packageRoot, "dist", program), {
    workerData: job,
    // Built code needs no loader, whatever flags this process was started with.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    stdout: true,
    stderr: true,
  });
  let onAbort: (() => void) | undefined;
  return new Promise<T | undefined>((done, failed) => {
    onAbort = () => failed(signal?.reason);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
    const timer = setTimeout(() => done(undefined), deadlineMs);
    worker.once("message", (answer: T) => done(answer));
    worker.once("error", (error) => (isTooMuch(error) ? done(undefined) : failed(error)));
    worker.once("exit", () => {
      clearTimeout(timer);
      done(undefined);
    });
  }).finally(() => {
    if (onAbort) signal?.removeEventListener("abort", onAbort);
    void worker.terminate();
  });
}

function isTooMuch(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
}
