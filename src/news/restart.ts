import { oneLine } from "../lib/quoted.ts";
import type { NewsLevel } from "../protocol/news.ts";
import type { Interrupted } from "../store/interrupted.ts";

export interface InterruptedWork {
  messages: readonly Interrupted[];
  tasks: readonly Interrupted[];
  runs: readonly Interrupted[];
  /** Background commands, which ended with the daemon. */
  commands: readonly Interrupted[];
  /** Effects with an intent but no result. */
  uncertainEffects: number;
  approvals: number;
  /** Schedules that are about to ask whether to catch up on missed times. */
  missed: number;
}

const MAX_LISTED = 5;

/** The message to the user after a restart; undefined if nothing was interrupted. */
export function describeRestart(left: InterruptedWork): { text: string; level: NewsLevel } | undefined {
  const { messages, tasks, runs, commands, uncertainEffects, approvals, missed } = left;
  const continuing = [
    ...messages.map((each) => `message ${named(each)}`),
    ...tasks.map((each) => `task ${named(each)}`),
    ...runs.map((each) => `run ${named(each)}`),
  ];
  const interrupted = [...continuing, ...commands.map((each) => `background command ${named(each)}`)];
  if (interrupted.length === 0) return undefined;
  const decisions = [
    ...(uncertainEffects > 0
      ? [`${count(uncertainEffects, "call")} of a tool was cut off: whether it was done is not known, and it is not repeated`]
      : []),
    ...(approvals > 0 ? [`${count(approvals, "question")} (io approval list)`] : []),
    ...(missed > 0 ? [`${count(missed, "schedule")} asks whether to do now what was missed (io approval list)`] : []),
  ];
  const more = interrupted.length - MAX_LISTED;
  const text = [
    "IO was restarted while it was at work.",
    `Interrupted: ${count(interrupted.length, "piece")} of work`,
    ...interrupted.slice(0, MAX_LISTED).map((each) => `• ${each}`),
    ...(more > 0 ? [`• … and ${more} more`] : []),
    `Goes on: ${continuationText(continuing.length, commands.length)}`,
    `Needs a decision: ${decisions.join("; ") || "nothing"}`,
  ].join("\n");
  return { text, level: decisions.length > 0 ? "urgent" : "normal" };
}

function continuationText(works: number, commands: number): string {
  if (commands === 0) return "all of it, from where it was";
  const ended = "background commands end with IO";
  return works === 0 ? `nothing; ${ended}` : `all but the ${count(commands, "background command")}, from where it was; ${ended}`;
}

const named = ({ id, text }: Interrupted) => `${id}: ${oneLine(text, 80)}`;
const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;
