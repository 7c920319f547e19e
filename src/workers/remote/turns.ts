import type { SessionSpec } from "../../engine/port.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { TurnRequest, TurnResult } from "../../protocol/turns.ts";
import { addCall, noUsage } from "../../protocol/usage.ts";
import type { State } from "../../store/state.ts";
import type { Dispatcher, JobEnd } from "../jobs/port.ts";
import type { Answers } from "./answers.ts";
import type { RemoteCalls } from "./calls.ts";
import { CLOSING } from "./closing.ts";
import { jobIdOf, type PlaceSpec, type TurnSpec, TurnValue } from "./job-messages.ts";
import { type RemoteFolder, type RemoteJob, runRemoteJob } from "./remote-job.ts";

export interface RemoteTurnsDeps {
  live: Map<string, Answers>;
  calls: RemoteCalls;
  state: State;
  /** The pool that a project wants: "any", or a label. */
  poolOf: (projectPath: string) => string;
  height: RemoteJob["height"];
  log: Log;
}

export interface RemoteTurn {
  spec: SessionSpec;
  request: TurnRequest;
  /** Whether the session is kept for later turns, on its worker. */
  lasting: boolean;
}

/** The number of the owner's latest job; 0 if there was none. */
export function lastOf(to: Dispatcher, owner: string): number {
  let number = 0;
  while (to.job(jobIdOf(owner, number + 1))) number += 1;
  return number;
}

/** Turns that run on workers. */
export function createRemoteTurns({ live, calls, state, poolOf, height, log }: RemoteTurnsDeps) {
  const homeOf = (session: string) => `away-session:${session}`;

  /** The pool of the host that keeps a lasting session, as long as that host is available. */
  async function hostOf(to: Dispatcher, session: string): Promise<string | undefined> {
    const worker = state.get(homeOf(session));
    if (worker === undefined) return undefined;
    const isThere = (await to.workers()).some(({ name, state: is }) => name === worker && (is === "ready" || is === "busy"));
    return isThere ? `host-${worker}` : undefined;
  }

  /** The result of a turn; undefined if the turn must be sent again. */
  function resultOf(end: JobEnd, { spec, request, lasting }: RemoteTurn, isOld: boolean): TurnResult | undefined {
    const worker = end.attempts.at(-1)?.worker;
    const trail = { ...(worker !== undefined && { worker }), workerAttempts: Math.max(1, end.attempts.length) };
    // It was given up before the restart.
    if (end.state === "cancelled" && !request.signal.aborted && isOld) return undefined;
    if (end.state === "cancelled") return { ...failed("aborted", "aborted", end.error.message), ...trail };
    if (end.state === "failed") return { ...failed("failed", "internal", end.error.message), ...trail };
    if (lasting && worker !== undefined) state.set(homeOf(spec.id), worker);
    return { ...TurnValue.parse(end.value), ...trail };
  }

  return {
    async run(to: Dispatcher, place: RemoteFolder, asked: RemoteTurn): Promise<TurnResult> {
      let heard = noUsage();
      const onEvent: TurnRequest["onEvent"] = (event) => {
        if (event.kind === "usage") heard = addCall(heard, event.call);
        asked.request.onEvent?.(event);
      };
      const turn = { ...asked, request: { ...asked.request, onEvent } };
      const { spec, request, lasting } = turn;
      const { owner, silenceMs, signal } = request;
      const last = lastOf(to, owner);
      const job = (where: PlaceSpec) => ({ kind: "turn" as const, spec: specOf(turn, where) });
      try {
        for (let again = request.interrupted && last > 0 ? last : last + 1; ; again += 1) {
          const pool = (lasting && (await hostOf(to, spec.id))) || poolOf(place.projectPath);
          const id = jobIdOf(owner, again);
          const remoteJob: RemoteJob = { to, place, id, pool, signal, job, silenceMs, height, turn: { spec, request, calls } };
          const end = await runRemoteJob(live, remoteJob);
          if (end === "closing") return failed("aborted", "aborted", CLOSING);
          calls.settle(owner);
          if (end === "host gone") {
            log.warn("the worker that kept a session is gone; another begins with what was said before", { session: spec.id });
            state.delete(homeOf(spec.id));
            continue;
          }
          const result = resultOf(end, turn, again === last);
          // The sum of the recorded calls is the usage, whatever total the worker reports.
          if (result) return again === last ? result : { ...result, usage: heard };
        }
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        return failed("failed", "internal", messageOf(error));
      }
    },
  };
}

function specOf({ spec, request, lasting }: RemoteTurn, place: PlaceSpec): TurnSpec {
  const { owner, prompt, silenceMs, capMs, beforeCall, spender } = request;
  const tools = spec.tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  return {
    ...{ owner, place, prompt, tools, silenceMs, capMs, lasting },
    model: spec.model ?? null,
    essential: spec.essential ? [...spec.essential] : null,
    session: spec.id,
    limited: beforeCall !== undefined,
    spender: spender ? { ...spender } : null,
  };
}

const failed = (outcome: TurnResult["outcome"], code: "aborted" | "internal", message: string): TurnResult => ({
  ...{ outcome, text: "", error: { code, message }, usage: noUsage(), tools: [], served: [] },
});
