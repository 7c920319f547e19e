import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../../lib/log.ts";
import { Attempt, Job, type Worker } from "../port.ts";
import { runJob } from "../run-job.ts";
import { type HeldJob, holdJob } from "./held-job.ts";
import type { Link } from "./link.ts";
import { ANSWERS, type AnswerTo } from "./messages.ts";
import { wakeSubject } from "./names.ts";

export interface WorkerHostDeps {
  /** Its connection stays open when the worker closes. */
  link: Link;
  capacity: number;
  worker: Worker;
  log: Log;
  /** Called when the number of running jobs changes. */
  onChange?: () => void;
}

/** Takes jobs from the daemon as long as it is open. */
export interface WorkerHost {
  /** How many jobs are running. */
  running(): number;
  /** Takes no more jobs; resolves when the running ones are finished. */
  drain(): Promise<void>;
  /** Gives its jobs back to the daemon; resolves when everything that it started has ended. */
  close(): Promise<void>;
}

/** The daemon answers within three seconds, even if it has no job. */
const NEXT_MS = 6_000;
const RETRY_MS = 250;
/** How long an ending worker waits for the daemon to learn that it takes no more jobs. */
const LEAVE_MS = 1_000;
/** Minimum time between two looks, however often the worker is woken. */
const LOOK_MS = 50;

type Grant = NonNullable<AnswerTo<"next">["grant"]>;

export function openWorker({ link, capacity, worker, log, onChange = () => undefined }: WorkerHostDeps): WorkerHost {
  const { connection: nc, name } = link;
  const running = new Map<string, HeldJob | undefined>();
  const works = new Set<Promise<void>>();
  const free = createSignal();
  let draining = false;
  let closed = false;
  const isClosed = () => closed || nc.isClosed();

  async function work({ job, attempt, earlier }: Grant): Promise<void> {
    const held = await holdJob({ link, job, attempt, log });
    if (!held) return log.info("a job that was given came too late", { job: job.id });
    running.set(attempt.lease, held);
    if (closed) held.stop.abort("lost");
    onChange();
    const { tell, record, ask, blobs, stop } = held;
    const whole: Worker = {
      async run({ specAt, ...rest }, jobAttempt) {
        if (!specAt) return worker.run(rest, jobAttempt);
        return worker.run({ ...rest, spec: JSON.parse(new TextDecoder().decode(await blobs.get(specAt))) }, jobAttempt);
      },
    };
    const outcome = await runJob({ worker: whole, job, jobAttempt: { attempt, earlier, tell, record, ask, blobs }, stop, log });
    if (closed) return nc.isClosed() ? undefined : held.release();
    if (stop.signal.reason === "lost") return log.warn("a job was lost to another worker, or to the daemon", { job: job.id });
    if ((await held.complete(outcome)) === "refused") log.warn("a result came too late and was refused", { job: job.id });
  }

  function take(grant: Grant): void {
    const { lease } = grant.attempt;
    running.set(lease, undefined);
    const one: Promise<void> = work(grant)
      .catch((error: unknown) => log.warn("a job could not be taken on; another will", { job: grant.job.id, error }))
      .finally(() => {
        running.get(lease)?.letGo();
        running.delete(lease);
        works.delete(one);
        free.tell();
        onChange();
      });
    works.add(one);
  }

  async function pull(): Promise<void> {
    while (!draining && !isClosed()) {
      if (running.size >= capacity) {
        await free.wait();
        continue;
      }
      const answered = await link.ask("next", { held: [...running.keys()] }, { timeoutMs: NEXT_MS });
      const grant = typeof answered === "string" ? undefined : ANSWERS.next.safeParse(answered.data).data?.grant;
      if (typeof answered === "string" && !isClosed()) await sleep(RETRY_MS);
      if (!grant) continue;
      const why = problemWith(grant, name);
      if (why !== undefined) log.error("a job is not in order and is left alone", { job: grant.job.id, why });
      else take(grant);
    }
  }

  let looking: NodeJS.Timeout | undefined;
  const waking = nc.subscribe(wakeSubject(name), {
    callback: () => {
      looking ??= setTimeout(() => {
        looking = undefined;
        for (const held of running.values()) held?.look();
      }, LOOK_MS);
    },
  });
  const pulling = pull();

  return {
    running: () => running.size,
    async drain() {
      draining = true;
      free.tell();
      // A job that is granted meanwhile is still done.
      await pulling;
      await Promise.all(works);
      if (!nc.isClosed()) await nc.flush();
    },
    async close() {
      closed = true;
      draining = true;
      free.tell();
      clearTimeout(looking);
      // Sent before any job is given back: the daemon would otherwise grant it to this worker's open question, and to nobody
      // else until that grant expires.
      const left = link.ask("next", { held: [...running.keys()], leaving: true }, { timeoutMs: LEAVE_MS });
      for (const held of running.values()) held?.stop.abort("lost");
      if (!nc.isClosed()) waking.unsubscribe();
      await Promise.all([left, ...works]);
    },
  };
}

/** What is wrong with a grant, though the daemon signed it. */
function problemWith({ job, attempt, earlier }: Grant, name: string): string | undefined {
  if (!Job.safeParse(job).success || !Attempt.safeParse(attempt).success) return "it cannot be read";
  if (attempt.worker !== name) return "it is for another worker";
  if (attempt.epoch !== job.epoch || attempt.attempt !== earlier.length + 1) return "its numbers do not agree";
  return undefined;
}

/** Lets several callers wait for the next change. */
function createSignal() {
  let waiting: (() => void)[] = [];
  return {
    wait: () => new Promise<void>((resolve) => void waiting.push(resolve)),
    tell(): void {
      const all = waiting;
      waiting = [];
      for (const each of all) each();
    },
  };
}
