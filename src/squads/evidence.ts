import { z } from "zod";
import type { Evidence, Task } from "../protocol/squads.ts";
import type { ToolCall } from "../store/tool-calls.ts";

const MAX_COMMANDS = 200;
const MAX_COMMAND = 500;

export interface RunCommand {
  command: string;
  /** Null when the command was stopped, or nobody knows how it ended. */
  exitCode: number | null;
}

/** The commands of a task with their exit codes, from the gate's own record of the calls. */
export function commandsAmong(calls: readonly ToolCall[]): RunCommand[] {
  return calls.filter(isCommand).map(({ args, result }) => {
    const code = /^exit code: (-?\d+)(?:\n|$)/.exec(result ?? "")?.[1];
    return { command: argumentOf(args, "command"), exitCode: code === undefined ? null : Number(code) };
  });
}

const isCommand = ({ tool, state }: ToolCall) => tool === "shell" && state !== "refused";
const Arguments = z.record(z.string(), z.unknown());

/** The journal shortens long arguments, so that they are no longer JSON. */
function argumentOf(args: string, name: "command" | "path"): string {
  try {
    const value = Arguments.parse(JSON.parse(args))[name];
    return clip(typeof value === "string" ? value : args);
  } catch {
    // Shortened: what is left of it is shown as it stands.
    return clip(args);
  }
}

const clip = (text: string) => (text.length <= MAX_COMMAND ? text : `${text.slice(0, MAX_COMMAND)}…`);

const BEFORE =
  /^(?:\(\s*|\w+=\S*\s+|(?:time|nice|env|sudo|npx|bunx|uv run|poetry run|bundle exec|timeout\s+\S+)\s+(?:--?\w\S*\s+)*)+/;
const TEST =
  /^(?:(?:npm|pnpm|yarn|bun)(?:\s+(?:--?\S+|run|workspace \S+|-w \S+))*\s+(?:t|test[:\w-]*)(?=\s|$)|(?:vitest|jest|mocha|ava|tap|cypress|jasmine|karma|pytest|tox|nox|rspec|phpunit|ctest|bats|behave)\b|playwright test\b|node\s+(?:\S+\s+)*--test\b|(?:deno|go|cargo|dotnet|swift|mix|flutter|dart|composer|zig|stack|cabal|bazel|elm|forge|sbt|lein)\s+(?:nextest\b|(?:\S+\s+)?test\b)|(?:\.\/)?(?:mvnw?|gradlew?)\b.*\b(?:test|verify|check)\b|python[\d.]*\s+-m\s+(?:pytest|unittest|nose2?)\b|python[\d.]*\s+manage\.py\s+test\b|(?:rails|rake|bin\/rails|bin\/rake)\s+(?:test|spec)\b|(?:make|just|task)\s+(?:\S+\s+)*(?:test|tests|check)\b|(?:bash |sh |\.\/)\S*test\S*)/;

/** Whether a command runs tests, and whether its exit code is theirs. */
export function testIn(command: string): { isTest: boolean; codeIsTheirs: boolean } {
  const plain = command
    .trim()
    .replace(/\d?>&\d|&>>?/g, ">")
    .replace(/"[^"]*"|'[^']*'/g, "quoted");
  const parts = plain.split(/(&&|\|\||;|\n|\|&?|&)/).map((part, index) => (index % 2 === 0 ? part.trim() : part));
  const at = parts.findLastIndex((part, index) => index % 2 === 0 && TEST.test(part.replace(BEFORE, "")));
  const after = at < 0 ? [] : parts.slice(at + 1);
  const pipefail = /\bset -\w*o pipefail\b/.test(plain);
  const hides = after.some((operator, index) => {
    if (index % 2 === 1 || operator === "&&") return false;
    return operator === "&" || (after[index + 1] !== "" && !(operator.startsWith("|") && operator !== "||" && pipefail));
  });
  return { isTest: at >= 0, codeIsTheirs: at >= 0 && !hides };
}

export interface Seen {
  calls: readonly ToolCall[];
  filesChanged: string[];
  treeBefore: string | null;
  treeAfter: string | null;
  alongside: string[];
}

/** Puts together what was seen of a task, and what that says about the claim that it is done. */
export function evidenceOf({ calls, filesChanged, treeBefore, treeAfter, alongside }: Seen, status: Task["status"]): Evidence {
  const commands = commandsAmong(calls);
  const isTest = ({ command }: RunCommand) => testIn(command).isTest;
  const lastTest = commands.findLast(isTest) ?? null;
  const since = calls.slice(calls.findLastIndex((call) => isCommand(call) && commandsAmong([call]).some(isTest)) + 1);
  const written = since.filter(({ tool, kind, state }) => tool === "file_ops" && kind === "effect" && state === "done");
  return {
    filesChanged,
    commands: commands.slice(-MAX_COMMANDS),
    treeBefore,
    treeAfter,
    lastTest,
    ...(status === "done" && { verdict: verdictOf(lastTest, [...new Set(written.map(({ args }) => argumentOf(args, "path")))]) }),
    ...(alongside.length > 0 && { alongside }),
  };
}

function verdictOf(test: RunCommand | null, writtenSince: readonly string[]): string {
  if (test === null) return "claimed done; no test command was run";
  const shown = `\`${test.command.replace(/\s+/g, " ")}\``;
  if (test.exitCode === null) return `claimed done, but ${shown} was the last test command and did not end by itself`;
  if (test.exitCode !== 0) return `claimed done, but ${shown} last exited ${test.exitCode}`;
  if (!testIn(test.command).codeIsTheirs)
    return `claimed done; ${shown} exited 0, but what follows the tests hides their own code`;
  if (writtenSince.length > 0)
    return `claimed done; ${shown} exited 0, but ${oneLine(writtenSince.slice(0, 3).join(", "), 200)} was written after it`;
  return `done; ${shown} last exited 0`;
}

/** A few lines for a person or a model. */
export function tellEvidence(evidence: Evidence): string {
  const { filesChanged, commands, verdict, alongside, treeBefore } = evidence;
  const shown = commands.slice(-8).map(({ command, exitCode }) => `  ${oneLine(command, 120)} → ${exitCode ?? "no exit code"}`);
  const files = filesChanged.slice(0, 20).join(", ");
  return [
    ...(verdict ? [`Verdict: ${verdict}.`] : []),
    treeBefore === null
      ? "Files changed: unknown, the project is not a git repository."
      : `Files changed, by git's account: ${filesChanged.length === 0 ? "none" : `${files}${filesChanged.length > 20 ? `, … (${filesChanged.length})` : ""}`}.`,
    ...(alongside?.length ? [`Other tasks worked in the same folder meanwhile: ${alongside.join(", ")}.`] : []),
    commands.length === 0 ? "Commands run: none." : `Commands run (${commands.length}) and their exit codes:`,
    ...shown,
  ].join("\n");
}

/** A text on one line, cut where it is long. */
export function oneLine(text: string, limit: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`;
}
