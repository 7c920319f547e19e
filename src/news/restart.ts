import { oneLine } from "../lib/quoted.ts";
import type { NewsLevel } from "../protocol/news.ts";
import type { Interrupted } from "../store/interrupted.ts";

export interface LeftUnderWay {
  messages: readonly Interrupted[];
  tasks: readonly Interrupted[];
  runs: readonly Interrupted[];
  /** Commands in the background, which ended with the daemon. */
  commands: readonly Interrupted[];
  /** Effects that were begun and have no known end. */
  uncertainEffects: number;
  approvals: number;
  /** Schedules of which a person is about to be asked whether what they missed is done now. */
  missed: number;
}

const SHOWN = 5;

/** What a person is told after a restart; undefined where nothing was interrupted. */
export function tellRestart(left: LeftUnderWay): { text: string; level: NewsLevel } | undefined {
  const { messages, tasks, runs, commands, uncertainEffects, approvals, missed } = left;
  const goesOn = [
    ...messages.map((each) => `message ${named(each)}`),
    ...tasks.map((each) => `task ${named(each)}`),
    ...runs.map((each) => `run ${named(each)}`),
  ];
  const interrupted = [...goesOn, ...commands.map((each) => `background command ${named(each)}`)];
  if (interrupted.length === 0) return undefined;
  const decisions = [
    ...(uncertainEffects > 0
      ? [`${count(uncertainEffects, "call")} of a tool was cut off: whether it was done is not known, and it is not repeated`]
      : []),
    ...(approvals > 0 ? [`${count(approvals, "question")} (io approval list)`] : []),
    ...(missed > 0 ? [`${count(missed, "schedule")} asks whether to do now what was missed (io approval list)`] : []),
  ];
  const more = interrupted.length - SHOWN;
  const text = [
    "IO was restarted while it was at work.",
    `Interrupted: ${count(interrupted.length, "piece")} of work`,
    ...interrupted.slice(0, SHOWN).map((each) => `• ${each}`),
    ...(more > 0 ? [`• … and ${more} more`] : []),
    `Goes on: ${whatGoesOn(goesOn.length, commands.length)}`,
    `Needs a decision: ${decisions.join("; ") || "nothing"}`,
  ].join("\n");
  return { text, level: decisions.length > 0 ? "urgent" : "normal" };
}

function whatGoesOn(works: number, commands: number): string {
  if (commands === 0) return "all of it, from where it was";
  const ended = "background commands end with IO";
  return works === 0 ? `nothing; ${ended}` : `all but the ${count(commands, "background command")}, from where it was; ${ended}`;
}

const named = ({ id, text }: Interrupted) => `${id}: ${oneLine(text, 80)}`;
const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? "" : "s"}`;
