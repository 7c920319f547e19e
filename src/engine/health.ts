import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { residentMb } from "../process/processes.ts";
import { isResponsive, kill, type Life } from "./life.ts";

export interface HealthDeps {
  everyMs: number;
  maxMb: () => number;
  /** The runtime to look at now, if there is one. */
  alive: () => Life | undefined;
  replace: (life: Life) => Promise<void>;
  log: Log;
}

/** Looks after the runtime until told to stop: one that does not answer is ended, so that its death is noticed; one that has grown too large is replaced. */
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
