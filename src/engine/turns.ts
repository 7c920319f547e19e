import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { TurnRequest, TurnResult } from "../protocol/turns.ts";
import { AFRESH, type Attempt } from "./attempt.ts";
import { failedTurn, nothingSaid, type RuntimeTrouble, type TurnError, turnError } from "./failures.ts";
import type { Generations } from "./generations.ts";
import type { ModelDoor } from "./model-door.ts";
import type { SessionSpec } from "./port.ts";
import { planRecovery, sessionLog } from "./recover.ts";
import type { Sessions } from "./sessions.ts";

export interface TurnsDeps {
  /** The runtime's home. */
  folder: string;
  attempt: Attempt;
  sessions: Pick<Sessions, "drop">;
  generations: Generations;
  door: Pick<ModelDoor, "window" | "handover">;
  modelOf: (wanted: string | undefined) => string;
  troubled: (trouble: RuntimeTrouble) => TurnError;
  /** Takes secrets out of what a provider says of a failure: some repeat the key they were given. */
  clean: (text: string) => string;
  log: Log;
}

const ATTEMPTS = 3;

/** Runs turns to their ends, through the death of the runtime and the loss of a session. */
export function createTurns({ folder, attempt, sessions, generations, door, modelOf, troubled, clean, log }: TurnsDeps) {
  /** An attempt that never rejects, with an error that a person may see. */
  async function attempted(...[spec, request, plan, number]: Parameters<Attempt>): Promise<TurnResult> {
    const result = await attempt(spec, request, plan, number).catch((error: unknown) =>
      failedTurn(troubled({ message: messageOf(error) })),
    );
    if (!result.error) return result;
    const message = clean(result.error.message).replaceAll(folder, "IO's sessions");
    return { ...result, error: { ...result.error, message } };
  }

  /** A conversation that had to be shortened goes on in a session that holds only what is left of it. Never within a turn: its record is needed to recover it. */
  function renew({ id }: SessionSpec): void {
    const earlier = door.handover(generations.current(id).session);
    if (earlier !== undefined) generations.next(id, earlier);
  }

  return async function run(spec: SessionSpec, request: TurnRequest): Promise<TurnResult> {
    const { prompt, signal, onEvent } = request;
    let promptId = request.interrupted?.promptId;
    const heard: TurnRequest = {
      ...request,
      onAccepted: (id) => {
        promptId = id;
        request.onAccepted?.(id);
      },
    };
    let interrupted = request.interrupted !== undefined;
    if (!interrupted) renew(spec);
    let last: TurnResult | undefined;
    for (let tried = 0; tried < ATTEMPTS; tried += 1) {
      if (signal.aborted) return { ...(last ?? nothingSaid()), outcome: "aborted", error: turnError("aborted") };
      const { previousPromptId } = request.interrupted ?? {};
      const steers = request.steering?.said() ?? [];
      const plan = interrupted
        ? planRecovery(sessionLog(folder, generations.current(spec.id).session), { prompt, promptId, previousPromptId, steers })
        : AFRESH;
      if (last?.text) onEvent?.({ kind: "restarted" });
      last = await attempted(spec, heard, plan, request.attempt * 10 + tried);
      const code = last.error?.code;
      if (code === "too_large" && tried === 0 && last.tools.length === 0) {
        log.warn("a conversation no longer fits its model's window and goes on in a new session", { session: spec.id });
        generations.next(spec.id, spec.handover?.(door.window(modelOf(spec.model))) ?? "");
        interrupted = false;
        continue;
      }
      if (code !== "runtime_died" && code !== "session_gone") return last;
      log.warn("a turn was cut off and is taken up again", { owner: request.owner, why: code, tried: tried + 1 });
      sessions.drop(spec.id);
      interrupted = true;
    }
    return last!;
  };
}
