import type { BackgroundCommand, BackgroundOutput } from "./background.ts";

/** Formats a background command with its latest output. */
export function formatBackground(output: BackgroundOutput, now = Date.now()): string {
  const { id, command, folder, owner, conversation, lines, total } = output;
  const of = conversation === null ? `${owner.kind} ${owner.id}` : `conversation ${conversation}`;
  const more = total > lines.length ? [`  (${total - lines.length} lines before)`] : [];
  const printed = total === 0 ? ["  (it has printed nothing)"] : [...more, ...lines.map((line) => `  ${line}`)];
  return [`${id}  ${stateOf(output, now)}  ${of}, in ${folder}`, `$ ${command}`, ...printed].join("\n");
}

/** Formats several commands, in the given order. */
export function formatAllBackground(all: readonly BackgroundOutput[]): string {
  return all.map((each) => formatBackground(each)).join("\n\n") || "No command runs in the background.";
}

/** The result of stopping a command. */
export function formatStopped({ id, state, exitCode }: BackgroundCommand): string {
  return state === "stopped"
    ? `${id} was stopped, with everything it had started.`
    : `${id} had ended before${withCode(exitCode)}.`;
}

const withCode = (code: number | null) => (code === null ? "" : `, exit code ${code}`);

function stateOf({ state, exitCode, startedAt, finishedAt }: BackgroundCommand, now: number): string {
  const lasted = span((finishedAt === null ? now : Date.parse(finishedAt)) - Date.parse(startedAt));
  switch (state) {
    case "running":
      return `running for ${lasted}`;
    case "ended":
      return `ended after ${lasted}${withCode(exitCode)}`;
    case "stopped":
      return `stopped after ${lasted}`;
    case "failed":
      return "could not be started";
  }
}

function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
