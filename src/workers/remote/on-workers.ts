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
  /** Workers on other hosts, where there are any now and they are to be used. */
  dispatcher: () => Dispatcher | undefined;
  /** Whether work waits for a worker where none is there. */
  waits: () => boolean;
  /** The workers that a project wants: "any", or a label. */
  poolOf: (projectPath: string) => string;
  /** The height of the sandbox that holds now for work that asks for at least this one. */
  height: RemoteJob["height"];
  /** Writes down what a model call cost whom. */
  spend: (spender: Spender, call: ModelCall) => void;
}

/** Has turns and checks done by workers on other hosts, as if they were done here. */
export function createWorkOnWorkers({ store, redactor, log, dispatcher, waits, poolOf, height, spend }: RemoteWorkDeps) {
  const calls = createRemoteCalls({ journal: createToolCalls(store), redactor });
  const live = new Map<string, Answers>();
  const attached = new WeakSet<Dispatcher>();
  const turns = createRemoteTurns({ live, calls, state: createState(store), poolOf, height, log });

  /** Hears of every job, also of those that an earlier life sent out, for as long as the dispatcher is open. */
  function attach(to: Dispatcher): void {
    if (attached.has(to)) return;
    attached.add(to);
    to.serve((question) => live.get(question.job.id)?.answer(question));
    to.listen(({ job, body }) => {
      if (body.kind !== "usage" && body.kind !== "delta") return;
      const answers = live.get(job);
      if (answers) return answers.hear(body.kind, body.data);
      const spender = body.kind === "usage" && to.job(job)?.spec.spender;
      // What is done for a run that nobody has taken up again yet costs the same.
      if (spender) spend(spender as Spender, readModelCall(body.data));
    });
  }

  /** The dispatcher, if a worker is to do it: one that was sent out before, or one for which somebody is there. */
  async function wayFor(place: RemoteFolder, sentBefore: (to: Dispatcher) => boolean): Promise<Dispatcher | undefined> {
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
    /** On a worker where one is to be had, and else here. */
    async turn(place: RemoteFolder, { local, ...turn }: RemoteTurn & { local: Session }): Promise<TurnResult> {
      const { request } = turn;
      const isOut = (to: Dispatcher) => request.interrupted !== undefined && lastOf(to, request.owner) > 0;
      const to = await wayFor(place, isOut);
      return to ? turns.run(to, place, turn) : local.run(request);
    },
    /** Runs commands on a worker, on the files as they are; undefined where that is to be done here. */
    async checks(
      place: RemoteFolder,
      { owner, checks, deadlineMs, signal }: Pick<ChecksSpec, "owner" | "checks" | "deadlineMs"> & { signal: AbortSignal },
    ): Promise<{ ends: CheckEnd[]; worker: string | undefined } | undefined> {
      const to = await wayFor(place, () => false);
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
