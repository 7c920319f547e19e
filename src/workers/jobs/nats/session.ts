import type { NatsConnection } from "@nats-io/transport-node";
import type { z } from "zod";
import { messageOf, UserError } from "../../../lib/errors.ts";
import type { Log } from "../../../lib/log.ts";
import { explainIssues } from "../../../lib/validation.ts";
import type { Jobs } from "../jobs.ts";
import { PROTOCOL } from "../port.ts";
import type { BlobStore } from "./blob-store.ts";
import type { Desk, VerifiedQuestion } from "./desk.ts";
import type { Lease, Leases } from "./leases.ts";
import { type AnswerTo, type Kind, QUESTIONS, ReportedOutcome } from "./messages.ts";
import { fromWorker } from "./names.ts";
import { carry, createAnswering } from "./questions.ts";

export interface SessionDeps {
  /** Stays open when the session ends. */
  connection: NatsConnection;
  desk: Desk;
  jobs: Jobs;
  leases: Leases;
  blobs: BlobStore;
  /** The pools whose jobs a worker may get now; none if it is draining or unknown. */
  poolsFor: (worker: string) => readonly string[];
  log: Log;
}

/** How long a worker waits for a job before it is told that there is none. */
const POLL_MS = 3_000;
/** Questions of one worker that are processed at the same time; the worker retries the others. */
const MOST_AT_ONCE = 500;

type Asked<K extends Kind> = z.infer<(typeof QUESTIONS)[K]>;
interface Poll {
  worker: string;
  give(lease: Lease | undefined): void;
}

/** Long polls of workers that wait for a job. */
function createPolls({ leases, poolsFor }: Pick<SessionDeps, "leases" | "poolsFor">) {
  let polls: Poll[] = [];

  /** Grants free jobs to the workers that have waited longest. */
  function handOut(): void {
    for (const poll of [...polls]) {
      const lease = leases.grant(poll.worker, poolsFor(poll.worker));
      if (lease) poll.give(lease);
    }
  }

  function next(worker: string, { held, leaving = false }: Asked<"next">): Promise<Lease | undefined> {
    // A worker that asks again has given up its earlier poll.
    for (const old of polls.filter((each) => each.worker === worker)) old.give(undefined);
    leases.dropMissing(worker, held);
    if (leaving) return Promise.resolve(undefined);
    return new Promise((give) => {
      const poll: Poll = {
        worker,
        give(lease) {
          clearTimeout(timer);
          polls = polls.filter((each) => each !== poll);
          give(lease);
        },
      };
      const timer = setTimeout(() => poll.give(undefined), POLL_MS);
      polls.push(poll);
      handOut();
    });
  }

  return {
    handOut,
    next,
    close(): void {
      for (const poll of [...polls]) poll.give(undefined);
    },
  };
}

type ReportsDeps = Pick<SessionDeps, "jobs" | "leases" | "blobs" | "log"> & { onOver: (lease: string) => void };

/** Handles what workers report of the jobs that they hold. */
function createReports({ jobs, leases, blobs, log, onOver }: ReportsDeps) {
  function beat(lease: Lease | undefined): AnswerTo<"beat"> {
    if (!lease) return { state: "lost" };
    leases.begin(lease);
    lease.cancel?.();
    return { state: lease.cancel ? "cancelled" : "held" };
  }

  function record(worker: string, { lease, job, seq, body }: Asked<"record">): AnswerTo<"record"> {
    const held = leases.find(lease, worker);
    // Usage counts even for an attempt that was lost meanwhile.
    const past = body.kind === "usage" ? jobs.attempts(job).find((each) => each.lease === lease) : undefined;
    const attempt = held?.job.id === job ? held.attempt : past;
    if (!attempt || attempt.worker !== worker || (held && !held.isBegun)) return { state: "lost" };
    // A daemon that has just started has no listener yet that could store it.
    if (!jobs.hasListeners()) return { state: "again" };
    try {
      const { end: _end, ...from } = attempt;
      jobs.publish({ job, ...from, seq, body });
      return { state: "told" };
    } catch (error) {
      if (!(error instanceof UserError)) {
        log.warn("an event of a job could not be written down yet", { job, error: messageOf(error) });
        return { state: "again" };
      }
      log.error("a worker reports what cannot be; its job is ended", { job, worker, error: error.message });
      if (held) finish(held, { state: "failed", error: { code: "bad_report", message: error.message } });
      return { state: "lost" };
    }
  }

  function finish({ job, attempt }: Lease, outcome: z.infer<typeof ReportedOutcome>): boolean {
    leases.drop(attempt.lease);
    onOver(attempt.lease);
    jobs.note(job.id, { ...attempt, end: outcome.state });
    return jobs.end(job.id, job.epoch, outcome);
  }

  async function end(worker: string, { lease: id, outcome }: Asked<"end">): Promise<AnswerTo<"end">> {
    const lease = leases.find(id, worker);
    if (!lease?.isBegun) return { state: "refused" };
    const reported = "value" in outcome ? outcome.value : await resultIn(lease, outcome.blob);
    // The lease may have been lost while the result was read.
    if (leases.find(id, worker) !== lease) return { state: "refused" };
    return { state: finish(lease, reported) ? "accepted" : "refused" };
  }

  async function resultIn({ attempt }: Lease, blob: Parameters<ReturnType<BlobStore["of"]>["get"]>[0]) {
    const lost = (why: string) =>
      ({ state: "failed", error: { code: "result_lost", message: `its result could not be read: ${why}` } }) as const;
    try {
      const parsed = ReportedOutcome.safeParse(JSON.parse(new TextDecoder().decode(await blobs.of(attempt.lease).get(blob))));
      return parsed.success ? parsed.data : lost(explainIssues(parsed.error));
    } catch (error) {
      return lost(messageOf(error));
    }
  }

  function put(lease: Lease | undefined, { name, at }: Asked<"put">, bytes: Uint8Array): AnswerTo<"put"> {
    if (!lease?.isBegun) return { have: 0, lost: true };
    try {
      return { have: blobs.add(lease.attempt.lease, name, at, bytes), lost: false };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      finish(lease, { state: "failed", error: { code: "too_much", message: error.message } });
      return { have: 0, lost: true };
    }
  }

  /** Ends the asker's job after a malformed question, which it would otherwise repeat for ever. */
  function rejectMalformed({ worker, kind, data }: VerifiedQuestion, why: string): void {
    log.error("a worker's question is not understood", { worker, kind, why });
    const id = typeof data === "object" && data !== null && "lease" in data ? String(data.lease) : "";
    const lease = leases.find(id, worker);
    const message = `its worker reported something that cannot be (${kind}: ${why}).`;
    if (lease?.isBegun && kind !== "delta") finish(lease, { state: "failed", error: { code: "bad_report", message } });
  }

  return { beat, record, end, put, rejectMalformed };
}

/** The daemon's side of one connection: answers each worker about its own jobs only. */
export function openSession({ connection: nc, desk, jobs, leases, blobs, poolsFor, log }: SessionDeps) {
  const answering = createAnswering({ jobs, blobs: blobs.of, log });
  const polls = createPolls({ leases, poolsFor });
  const { beat, record, end, put, rejectMalformed } = createReports({ jobs, leases, blobs, log, onOver: answering.forget });
  const underWay = new Map<string, number>();

  /** The grant as it travels: a spec that is too large for a message becomes a blob. */
  async function granted({ job, attempt, earlier }: Lease): Promise<AnswerTo<"next">["grant"]> {
    const spec = await carry(job.spec, blobs.of(attempt.lease), "spec");
    const sent = "blob" in spec ? { ...job, spec: {}, specAt: spec.blob } : job;
    return { job: { ...sent, protocol: PROTOCOL }, attempt, earlier };
  }

  async function handle(heard: VerifiedQuestion): Promise<void> {
    const { worker, answer } = heard;
    const kind = heard.kind as Kind;
    const parsed = Object.hasOwn(QUESTIONS, kind) ? QUESTIONS[kind].safeParse(heard.data) : undefined;
    if (!parsed?.success) {
      rejectMalformed(heard, parsed ? explainIssues(parsed.error) : "there is no such question");
      // Tells the asker to stop.
      if (kind === "end" || kind === "release") answer({ state: "refused" } satisfies AnswerTo<"end">);
      else if (kind === "put") answer({ have: 0, lost: true } satisfies AnswerTo<"put">);
      else if (kind !== "delta") answer({ state: "lost" } satisfies AnswerTo<"beat">);
      return;
    }
    const asked = <K extends Kind>(_: K) => parsed.data as Asked<K>;
    const lease = "lease" in parsed.data ? leases.find(parsed.data.lease, worker) : undefined;
    switch (kind) {
      case "next": {
        const given = await polls.next(worker, asked("next"));
        answer({ grant: given ? await granted(given) : null } satisfies AnswerTo<"next">);
        return;
      }
      case "beat":
        return answer(beat(lease));
      case "ask":
        return answer(lease?.isBegun ? await answering.answer(lease, asked("ask")) : { state: "lost" });
      case "record":
        return answer(record(worker, asked("record")));
      case "delta":
        if (lease?.isBegun) {
          const { seq, data } = asked("delta");
          jobs.publish({ job: lease.job.id, ...lease.attempt, seq, body: { kind: "delta", data } });
        }
        return;
      case "end":
        return answer(await end(worker, asked("end")));
      case "release":
        if (lease) leases.lose(lease);
        return answer({ state: lease ? "accepted" : "refused" } satisfies AnswerTo<"release">);
      case "put":
        return answer(put(lease, asked("put"), heard.bytes));
      case "get": {
        const { name, at } = asked("get");
        const piece = lease?.isBegun ? blobs.piece(lease.attempt.lease, name, at) : undefined;
        return answer({ size: piece?.size ?? null } satisfies AnswerTo<"get">, piece?.bytes);
      }
    }
  }

  const begin = fromWorker("").length;
  const subscription = nc.subscribe(fromWorker("*"), {
    callback: (error, message) => {
      const worker = message?.subject.slice(begin) ?? "";
      const atOnce = underWay.get(worker) ?? 0;
      const heard = error || atOnce >= MOST_AT_ONCE ? undefined : desk.open(worker, message);
      if (!heard) return;
      underWay.set(worker, atOnce + 1);
      // No answer at all makes the worker ask again.
      handle(heard)
        .catch((failure: unknown) =>
          log.warn("a worker's question is left for its next try", { worker, error: messageOf(failure) }),
        )
        .finally(() => underWay.set(worker, underWay.get(worker)! - 1));
    },
  });

  return {
    handOut: polls.handOut,
    close(): void {
      if (!nc.isClosed()) subscription.unsubscribe();
      polls.close();
    },
  };
}
export type Session = ReturnType<typeof openSession>;
