import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { packageRoot } from "./paths.ts";

export interface OffThreadOptions {
  deadlineMs: number;
  memoryMb?: number;
}

/**
 * Has one job done in a thread that is started for it and ended with it, so that nothing the job is given can silence
 * whoever waits. Undefined if it took too long, or more memory than it may. `program` is an entry of the built package.
 */
export function offThread<T>(
  program: string,
  job: unknown,
  { deadlineMs, memoryMb = 128 }: OffThreadOptions,
): Promise<T | undefined> {
  const worker = new Worker(join(packageRoot, "dist", program), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    stdout: true,
    stderr: true,
  });
  return new Promise<T | undefined>((done, failed) => {
    const timer = setTimeout(() => done(undefined), deadlineMs);
    worker.once("message", (answer: T) => done(answer));
    worker.once("error", (error) => (isTooMuch(error) ? done(undefined) : failed(error)));
    worker.once("exit", () => {
      clearTimeout(timer);
      done(undefined);
    });
  }).finally(() => void worker.terminate());
}

function isTooMuch(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
}
