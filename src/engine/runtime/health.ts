import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { residentMb } from "../../process/processes.ts";
import { kill } from "./leftovers.ts";
import { isResponsive, type RuntimeProcess } from "./process.ts";

export interface HealthDeps {
  everyMs: number;
  maxMb: () => number;
  /** The current runtime, if there is one. */
  alive: () => RuntimeProcess | undefined;
  replace: (life: RuntimeProcess) => Promise<void>;
  log: Log;
}

/** Watches the runtime: kills it when it stops answering, so that its turns notice, and replaces it when it grows too large. */
export function watchHealth({ everyMs, maxMb, alive, replace, log }: HealthDeps): () => void {
  async function check(): Promise<void> {
    const life = alive();
    if (!life || life.isDead()) return;
    if (!(await isResponsive(life))) {
      log.warn("the agents' runtime does not answer and is ended", { pid: life.pid });
      kill(life.pid);
      return;
    }
    const megabytes = await residentMb(life.pid);
    if (megabytes <= maxMb()) return;
    log.info("the agents' runtime is renewed because of its memory", { megabytes });
    await replace(life);
  }
  const timer = setInterval(() => {
    check().catch((error: unknown) => log.warn("the health check failed", { error: messageOf(error) }));
  }, everyMs).unref();
  return () => clearInterval(timer);
}
