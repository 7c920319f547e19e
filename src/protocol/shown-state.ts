// The page imports this file too, so it imports nothing that imports more.
import type { DiskInfo } from "./api.ts";
import type { WaitsFor } from "./approvals.ts";
import type { CallEnd } from "./calls.ts";
import { verdictOf } from "./check-words.ts";
import type { MessageStatus } from "./messages.ts";
import type { CheckEvidence, CheckVerdict, ReviewLoop, RunOutcome, RunPhase, RunStatus, RunStep, RunStream } from "./runs.ts";
import type { Activity, Task } from "./squads.ts";
import type { Retry } from "./turns.ts";

/** A state at a glance; only `good` is ever shown in green. */
export type Tone = "good" | "bad" | "doubt" | "busy" | "asks" | "idle";

/** A state as every channel shows it. */
export interface ShownState {
  mark: string;
  words: string;
  tone: Tone;
}

/** Everything that can be shown with a mark. */
export type Stateful =
  | { kind: "message"; status: MessageStatus; waitsFor?: WaitsFor | undefined }
  | { kind: "call"; state: CallState; exitCode?: number | null | undefined }
  | { kind: "check"; check: Pick<CheckEvidence, "exitCode" | "ending" | "verdict" | "excused" | "changed" | "bound"> }
  /** `run` is the state of the step's run; `isVoid`: what the step approved was changed later. */
  | { kind: "step"; step: Pick<RunStep, "state" | "verdict">; run?: RunStatus; isVoid?: boolean }
  | { kind: "review"; outcome: ReviewLoop["outcome"]; isVoid?: boolean }
  | { kind: "phase"; status: RunPhase["status"] }
  | { kind: "stream"; status: RunStream["status"] }
  | { kind: "task"; task: Pick<Task, "status" | "evidence" | "waitsFor"> }
  | { kind: "run"; status: RunStatus; outcome: RunOutcome | null; waitsFor?: WaitsFor | undefined };

/** A tool call's state in the journal, or in its events while it runs. */
export type CallState = "started" | "running" | "begun" | CallEnd;

const MARKS: Record<Tone, string> = { good: "✓", bad: "✗", doubt: "!", busy: "…", asks: "?", idle: "·" };

/** The only place that assigns marks and words to states. */
export function showState(of: Stateful): ShownState {
  switch (of.kind) {
    case "message":
      return waiting(of) ?? shown(MESSAGE[of.status], of.status);
    case "call":
      return callState(of.state, of.exitCode);
    case "check":
      return checkState(of.check);
    case "step":
      return stepState(of.step, of.run ?? "running", of.isVoid === true);
    case "review":
      return of.isVoid ? shown("doubt", `${of.outcome}, void`) : shown(REVIEW[of.outcome], of.outcome);
    case "phase":
    case "stream":
      return shown(PART[of.status], of.status);
    case "task":
      return taskState(of.task);
    case "run":
      return waiting(of) ?? (of.outcome === null ? shown(PART[of.status], of.status) : shown(OUTCOME[of.outcome], of.outcome));
  }
}

/** The text after a call beside its mark: empty while it runs, and if it simply went well. */
export function callEnding(state: CallState, exitCode?: number | null): string {
  const { words, tone } = callState(state, exitCode);
  return tone === "busy" || (tone === "good" && exitCode === undefined) ? "" : words;
}

/** A call's state after its turn: unknown if it was still running. */
export function stateAtTheEnd(state: CallState): CallState {
  return CALL[state] === "busy" ? "unknown" : state;
}

/** The state of a command in a task's evidence. */
export function showCommand({ exitCode, state }: NonNullable<Task["evidence"]>["commands"][number]): ShownState {
  return callState(state ?? "done", exitCode);
}

/** The state of the call in a line of a task's record; undefined for any other line. */
export function callOf({ kind, data }: Pick<Activity, "kind" | "data">): Stateful | undefined {
  const { state, exitCode } = data ?? {};
  if (kind !== "tool" || !isCallState(state)) return undefined;
  return { kind: "call", state, ...((typeof exitCode === "number" || exitCode === null) && { exitCode }) };
}

/** The exit code at the beginning of a command's result: null if it ended without one, undefined if it is no such result. */
export function exitCodeIn(result: string | null): number | null | undefined {
  const [, code] = /^exit code: (-?\d+|none)\b/.exec(result ?? "") ?? [];
  return code === undefined ? undefined : code === "none" ? null : Number(code);
}

/** A failed try, on one line. */
export function formatRetry({ attempt, why, waitMs }: Retry): string {
  const next = waitMs === null ? "it is tried again in a moment" : `it is tried again in ${Math.ceil(waitMs / 1_000)} s`;
  return `try ${attempt} failed, ${next}: ${why}`;
}

/** Says on one line that work waits for room on the disk, or continues. */
export function formatDiskState({ detail }: DiskInfo): string {
  return detail ?? "There is room on the disk again: work goes on.";
}

/** How much is running, and how much of it a person holds up. */
export function formatRunning(running: number, held = 0): string {
  const waiting = held === 1 ? "1 of them waits for you" : `${held} of them wait for you`;
  return held > 0 ? `${running} running (${waiting})` : `${running} running`;
}

/** Whether a test that would notice was seen to pass after a task's last change. */
export function isProven({ evidence }: Pick<Task, "evidence">): boolean {
  return evidence?.proven ?? evidence?.verdict?.startsWith("done;") ?? false;
}

/** Running work that a person holds up. */
function waiting({ status, waitsFor }: { status: string; waitsFor?: WaitsFor | undefined }): ShownState | undefined {
  if (status !== "running" || waitsFor === undefined) return undefined;
  return shown("asks", waitsFor.kind === "budget" ? "waits for you (budget)" : "waits for you");
}

const isCallState = (state: unknown): state is CallState => typeof state === "string" && Object.hasOwn(CALL, state);
const shown = (tone: Tone, words: string): ShownState => ({ mark: MARKS[tone], words, tone });

const MESSAGE: Record<MessageStatus, Tone> = { queued: "idle", running: "busy", done: "good", failed: "bad", cancelled: "doubt" };
const PART: Record<RunPhase["status"] | RunStream["status"], Tone> = {
  waiting: "idle",
  running: "busy",
  done: "good",
  skipped: "idle",
  failed: "bad",
  cancelled: "doubt",
  interrupted: "doubt",
};
const REVIEW: Record<ReviewLoop["outcome"], Tone> = { approved: "good", exhausted: "bad", skipped: "idle", failed: "bad" };
const OUTCOME: Record<RunOutcome, Tone> = {
  approved: "good",
  untested: "doubt",
  unapproved: "bad",
  unchanged: "doubt",
  failed: "bad",
  cancelled: "doubt",
};
const CALL: Record<CallState, Tone> = {
  ...{ started: "busy", running: "busy", begun: "busy" },
  ...{ done: "good", failed: "bad", refused: "bad", unknown: "doubt" },
};
/** The tones of step verdicts; any other is shown as doubtful. */
const VERDICT: Record<string, Tone> = {
  ...{ approved: "good", passed: "good", merged: "good", tried: "good" },
  ...{ rejected: "bad", failed: "bad", conflict: "bad", "no tasks": "bad" },
};

function callState(state: CallState, exitCode: number | null | undefined): ShownState {
  if (state !== "done" || exitCode === undefined) return shown(CALL[state], state);
  if (exitCode === null) return shown("bad", "ended by a signal");
  return shown(exitCode === 0 ? "good" : "bad", `exit ${exitCode}`);
}

const CHECK: Record<CheckVerdict, Tone> = {
  ...{ passed: "good", failed: "bad", flaky: "doubt", "as before": "doubt", "could not run": "doubt" },
};

function checkState(check: Extract<Stateful, { kind: "check" }>["check"]): ShownState {
  const { exitCode, ending, bound } = check;
  const verdict = verdictOf(check);
  const end = ending === "exited" ? `exit ${exitCode ?? "none"}` : ending;
  const words = verdict === "passed" || verdict === "failed" ? end : `${end}, ${verdict}`;
  return verdict === "passed" && bound === false
    ? shown("doubt", `${words}, did not notice broken code`)
    : shown(CHECK[verdict], words);
}

function stepState({ state, verdict }: Pick<RunStep, "state" | "verdict">, run: RunStatus, isVoid: boolean): ShownState {
  if (state === "begun") return run === "running" ? shown("busy", "begun") : shown("doubt", run === "done" ? "cut off" : run);
  if (state === "failed") return shown("bad", verdict ?? "failed");
  if (verdict === null) return shown("good", "done");
  if (isVoid) return shown("doubt", `${verdict}, void`);
  return shown(VERDICT[verdict] ?? (/^[1-9]\d* tasks?$/.test(verdict) ? "good" : "doubt"), verdict);
}

function taskState(task: Pick<Task, "status" | "evidence" | "waitsFor">): ShownState {
  const held = waiting(task);
  if (held) return held;
  if (task.status !== "done" || isProven(task)) return shown(MESSAGE[task.status], task.status);
  return shown("doubt", "done, unproven");
}
