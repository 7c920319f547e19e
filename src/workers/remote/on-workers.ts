import { z } from "zod";
import type { Session } from "../../engine/port.ts";
import { UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Redactor } from "../../lib/redact.ts";
import type { TurnResult } from "../../protocol/turns.ts";
import type { ModelCall, Spender } from "../../protocol/usage.ts";
import type { Store } from "../../store/open.ts";
import { createState } from "../../store/state.ts";
import { createToolCalls } from "../../store/tool-calls.ts";
import type { Dispatcher } from "../jobs/port.ts";
import type { Answers } from "./answers.ts";
import { createRemoteCalls } from "./calls.ts";
import { canTravel } from "./code.ts";
import { CheckEnd, type ChecksSpec, jobIdOf, type PlaceSpec, readModelCall } from "./job-messages.ts";
import { type RemoteFolder, type RemoteJob, runRemoteJob } from "./remote-job.ts";
import { createRemoteTurns, lastOf, type RemoteTurn } from "./turns.ts";

export interface RemoteWorkDeps {
  store: Store;
  redactor: Redactor;
  log: Log;
  /** The dispatcher, if there is a cluster now and it is enabled. */
  dispatcher: () => Dispatcher | undefined;
  /** Whether work waits for a worker if none is available. */
  waits: () => boolean;
  /** The pool that a project wants: "any", or a label. */
  poolOf: (projectPath: string) => string;
  /** The sandbox height that now applies to work that asks for at least this one. */
  height: RemoteJob["height"];
  /** Charges a model call to its spender. */
  spend: (spender: Spender, call: ModelCall) => void;
}

/** Has turns and checks done by workers on other hosts, with the same interface as local work. */
export function createWorkOnWorkers({ store, redactor, log, dispatcher, waits, poolOf, height, spend }: RemoteWorkDeps) {
  const calls = createRemoteCalls({ journal: createToolCalls(store), redactor });
  const live = new Map<string, Answers>();
  const attached = new WeakSet<Dispatcher>();
  const turns = createRemoteTurns({ live, calls, state: createState(store), poolOf, height, log });

  /** Listens to all jobs, including those sent before a restart, as long as the dispatcher is open. */
  function attach(to: Dispatcher): void {
    if (attached.has(to)) return;
    attached.add(to);
    to.serve((question) => live.get(question.job.id)?.answer(question));
    to.listen(({ job, body }) => {
      if (body.kind !== "usage" && body.kind !== "delta") return;
      const answers = live.get(job);
      if (answers) return answers.receive(body.kind, body.data);
      const spender = body.kind === "usage" && to.job(job)?.spec.spender;
      // Usage for a run that nobody has resumed yet is charged all the same.
      if (spender) spend(spender as Spender, readModelCall(body.data));
    });
  }

  /** The dispatcher, if a worker should do the work: because it was sent before, or a worker is available. */
  async function dispatcherFor(place: RemoteFolder, sentBefore: (to: Dispatcher) => boolean): Promise<Dispatcher | undefined> {
    const to = dispatcher();
    if (!to) return undefined;
    attach(to);
    if (sentBefore(to)) return to;
    if (!canTravel(place)) return undefined;
    if (waits()) return to;
    return (await to.workers()).some(({ state: is }) => is === "ready" || is === "busy") ? to : undefined;
  }

  return {
    attach,
    /** Runs the turn on a worker if one is available, else here. */
    async turn(place: RemoteFolder, { local, ...turn }: RemoteTurn & { local: Session }): Promise<TurnResult> {
      const { request } = turn;
      const wasSent = (to: Dispatcher) => request.interrupted !== undefined && lastOf(to, request.owner) > 0;
      const to = await dispatcherFor(place, wasSent);
      return to ? turns.run(to, place, turn) : local.run(request);
    },
    /** Runs commands on a worker, on the current files; undefined if they must run here. */
    async checks(
      place: RemoteFolder,
      { owner, checks, deadlineMs, signal }: Pick<ChecksSpec, "owner" | "checks" | "deadlineMs"> & { signal: AbortSignal },
    ): Promise<{ ends: CheckEnd[]; worker: string | undefined } | undefined> {
      const to = await dispatcherFor(place, () => false);
      if (!to) return undefined;
      const id = jobIdOf(owner, lastOf(to, owner) + 1);
      const job = (where: PlaceSpec) => {
        const spec: ChecksSpec = { owner, place: where, checks, deadlineMs };
        return { kind: "checks" as const, spec };
      };
      const end = await runRemoteJob(live, {
        to,
        place,
        id,
        pool: poolOf(place.projectPath),
        signal,
        job,
        silenceMs: deadlineMs,
        height,
      });
      if (typeof end !== "object") return undefined;
      if (end.state !== "done") {
        if (signal.aborted) return undefined;
        throw new UserError(`The checks could not be run on a worker: ${end.error.message}`);
      }
      return { ends: z.array(CheckEnd).parse(end.value), worker: end.attempts.at(-1)?.worker };
    },
  };
}
export type WorkOnWorkers = ReturnType<typeof createWorkOnWorkers>;
