import { setTimeout as sleep } from "node:timers/promises";
import { hasRoom, whenRoom } from "../../lib/disk-room.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { TurnEvent, TurnRequest, TurnResult } from "../../protocol/turns.ts";
import { failedTurn, mayBeFullDisk, nothingSaid, type RuntimeTrouble, type TurnError, turnError } from "../models/failures.ts";
import type { ModelGateway } from "../models/gateway.ts";
import type { SessionSpec } from "../port.ts";
import type { Handover } from "../wire/handover.ts";
import { AFRESH, type Attempt, firstTry } from "./attempt.ts";
import type { Generations } from "./generations.ts";
import { carryOver } from "./open.ts";
import { planRecovery, planSend, sessionLog } from "./recover.ts";
import type { Sessions } from "./sessions.ts";

export interface TurnsDeps {
  /** The runtime's home. */
  folder: string;
  attempt: Attempt;
  sessions: Pick<Sessions, "drop">;
  generations: Generations;
  door: Pick<ModelGateway, "handover">;
  troubled: (trouble: RuntimeTrouble) => TurnError;
  /** Redacts a provider's error: some repeat the key they were given. */
  clean: (text: string) => string;
  log: Log;
  /** The delay if the disk reports free space, because a quota may be used up. */
  quotaMs?: number | undefined;
}

const ATTEMPTS = 3;
/** How often a turn is retried after a full disk. Its attempts are numbered, with ten numbers for each process that runs it. */
const FULL_ATTEMPTS = 6;
const QUOTA_MS = 2_000;

/** Runs turns to their end, through a runtime's death and a lost session. */
export function createTurns({
  folder,
  attempt,
  sessions,
  generations,
  door,
  troubled,
  clean,
  log,
  quotaMs = QUOTA_MS,
}: TurnsDeps) {
  /** One attempt that never rejects, with an error fit to be shown. */
  async function attempted(...[spec, request, plan, number]: Parameters<Attempt>): Promise<TurnResult> {
    const result = await attempt(spec, request, plan, number).catch((error: unknown) =>
      failedTurn(troubled({ message: messageOf(error) })),
    );
    if (!result.error) return result;
    // A failed write looks like a broken or silent runtime.
    if (mayBeFullDisk(result.error.code) && !hasRoom(folder)) return { ...result, error: turnError("disk_full") };
    const message = clean(result.error.message).replaceAll(folder, "IO's sessions");
    return { ...result, error: { ...result.error, message } };
  }

  /** Moves a shortened conversation to a session with only what is left of it; never during a turn, whose log recovery needs. */
  function renew({ id }: SessionSpec): void {
    const earlier = door.handover(generations.current(id).session);
    if (earlier !== undefined) generations.next(id, earlier);
  }

  return async function run(spec: SessionSpec, request: TurnRequest): Promise<TurnResult> {
    const { prompt, signal, onEvent } = request;
    let promptId = request.interrupted?.promptId;
    const heard: TurnRequest = {
      ...request,
      // A provider's message may contain what no event may.
      ...(onEvent && {
        onEvent: (event: TurnEvent) => onEvent(event.kind === "retry" ? { ...event, why: clean(event.why) } : event),
      }),
      onAccepted: (id) => {
        promptId = id;
        request.onAccepted?.(id);
      },
    };
    let interrupted = request.interrupted !== undefined;
    const begunAt = interrupted ? undefined : Date.now();
    if (!interrupted) renew(spec);
    let last: TurnResult | undefined;
    let full = 0;
    for (let tried = 0; tried < ATTEMPTS; tried += 1) {
      await whenRoom(folder, signal);
      if (signal.aborted) return { ...(last ?? nothingSaid()), outcome: "aborted", error: turnError("aborted") };
      const { previousPromptId } = request.interrupted ?? {};
      const steers = request.steering?.said() ?? [];
      const number = firstTry(request) + tried + full;
      const logFile = sessionLog(folder, generations.current(spec.id).session);
      const plan = interrupted
        ? planRecovery(logFile, { prompt, promptId, previousPromptId, begunAt, steers })
        : number > firstTry({ attempt: 1 })
          ? planSend(logFile)
          : AFRESH;
      if (last?.text) onEvent?.({ kind: "restarted" });
      last = await attempted(spec, heard, plan, number);
      const code = last.error?.code;
      if (code === "too_large" && tried === 0 && last.tools.length === 0) {
        log.warn("a conversation no longer fits its model's window and goes on in a new session", { session: spec.id });
        generations.next(spec.id, withoutPrompt(carryOver(folder, generations, spec.id), prompt));
        interrupted = false;
        continue;
      }
      if (code === "disk_full" && full < FULL_ATTEMPTS) {
        if (hasRoom(folder)) await sleep(quotaMs, undefined, { signal, ref: false }).catch(() => undefined);
        full += 1;
        tried -= 1;
      } else if (code !== "runtime_died" && code !== "session_gone") return last;
      if (tried + 1 < ATTEMPTS) onEvent?.({ kind: "retry", attempt: tried + 1, why: last.error!.message, waitMs: 0 });
      log.warn("a turn was cut off and is taken up again", { owner: request.owner, why: code, tried: tried + 1 });
      sessions.drop(spec.id);
      interrupted = true;
    }
    return last!;
  };
}

/** A hand-over without the message that is about to be sent again. */
function withoutPrompt(handover: Handover, prompt: string): Handover {
  const last = handover.latest.at(-1);
  return last?.role === "user" && last.text === prompt ? { ...handover, latest: handover.latest.slice(0, -1) } : handover;
}
