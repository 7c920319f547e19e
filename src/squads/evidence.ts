import { z } from "zod";
import { named, namedList, oneLine } from "../lib/quoted.ts";
import { detectTests, isReadOnlyCommand } from "../project/test-commands.ts";
import type { CallEnd } from "../protocol/calls.ts";
import { exitCodeIn, isProven, showCommand } from "../protocol/shown-state.ts";
import type { Task, TaskEvidence } from "../protocol/squads.ts";
import type { ToolCall } from "../store/tool-calls.ts";
import { type CallPlace, concerning, isTestOf } from "./call-places.ts";

const MAX_COMMANDS = 200;
const MAX_COMMAND = 500;

export interface RunCommand {
  command: string;
  /** Null if the command was stopped, or if nobody knows how it ended. */
  exitCode: number | null;
  state?: Exclude<CallEnd, "done">;
}

/** A task's commands with their exit codes, from the gate's own record of the calls. */
export function commandsAmong(calls: readonly ToolCall[]): RunCommand[] {
  return calls.filter(isCommand).map(({ args, result, state }) => ({
    ...{ command: clip(commandOf(args)), exitCode: exitCodeIn(result) ?? null },
    ...(state !== "done" && { state: state === "begun" ? ("unknown" as const) : state }),
  }));
}

const commandOf = (args: string) => argumentOf(args, "command");

const isCommand = ({ tool, state }: ToolCall) => tool === "shell" && state !== "refused";
const Arguments = z.record(z.string(), z.unknown());

/** The journal shortens long arguments, which are then no longer JSON. */
function argumentOf(args: string, name: "command" | "path" | "to"): string {
  try {
    const value = Arguments.parse(JSON.parse(args))[name];
    return typeof value === "string" ? value : args;
  } catch {
    // Shortened: the rest is shown as it is.
    return args;
  }
}

/** The files that calls are known to have written, as the agent spelled them. */
export function filesWritten(calls: readonly ToolCall[]): string[] {
  const isWrite = ({ tool, kind, state }: ToolCall) => tool === "file_ops" && kind === "effect" && state === "done";
  return calls.filter(isWrite).flatMap(({ args }) => [...new Set([argumentOf(args, "path"), ...targetOf(args)])]);
}

/** Where a file was moved to. */
function targetOf(args: string): string[] {
  const to = argumentOf(args, "to");
  return to === args ? [] : [to];
}

const clip = (text: string) => (text.length <= MAX_COMMAND ? text : `${text.slice(0, MAX_COMMAND)}…`);

export interface ObservedWork {
  calls: readonly ToolCall[];
  filesChanged: string[];
  treeBefore: string | null;
  treeAfter: string | null;
  alongside: string[];
  byOthers: NonNullable<TaskEvidence["byOthers"]>;
  branch: string | undefined;
  base: string | undefined;
  /** The other repositories that it worked on. */
  others?: TaskEvidence["others"];
  /** Where all its repositories are, its own first; only if there are others. */
  places?: readonly CallPlace[];
}

/** Combines what was seen of a task, and judges the claim that it is done. */
export function evidenceOf(work: ObservedWork, status: Task["status"]): TaskEvidence {
  const { calls, filesChanged, treeBefore, treeAfter, alongside, byOthers, branch, base, others } = work;
  const commands = commandsAmong(calls);
  const tested = calls.findLast(isTest);
  const lastTest = tested ? commandsAmong([tested])[0]! : null;
  const theirs = byOthers.filter(({ file }) => filesChanged.includes(file));
  return {
    filesChanged: filesChanged.filter((changed) => theirs.every(({ file }) => file !== changed)),
    commands: commands.slice(-MAX_COMMANDS),
    treeBefore,
    treeAfter,
    lastTest,
    ...(status === "done" && judged(others ? verdictOfAll(work) : verdictAmong(calls, isTest))),
    ...(alongside.length > 0 && { alongside }),
    ...(theirs.length > 0 && { byOthers: theirs }),
    ...(branch !== undefined && { branch }),
    ...(base !== undefined && { base }),
    ...(others && { others }),
  };
}

const judged = (verdict: string) => ({ verdict, proven: isProven({ evidence: { ...NOTHING, verdict } }) });
const NOTHING: TaskEvidence = { filesChanged: [], commands: [], treeBefore: null, treeAfter: null };
const NO_TEST = "claimed done; no test command was run";

const isTest = (call: ToolCall) => isCommand(call) && detectTests(commandOf(call.args)).isTest;

/** What the last test among some calls says, and what came after it. */
function verdictAmong(calls: readonly ToolCall[], isTheirTest: (call: ToolCall) => boolean): string {
  const at = calls.findLastIndex(isTheirTest);
  const tested = calls[at];
  return tested ? verdictOf(commandsAmong([tested])[0]!, tested, calls.slice(at + 1)) : NO_TEST;
}

/** Each repository that was changed needs a test of its own; one that was not needs none. */
function verdictOfAll({ calls, treeBefore, treeAfter, others = [], places = [] }: ObservedWork): string {
  const isChanged = [treeAfter !== treeBefore, ...others.map((other) => other.treeAfter !== other.treeBefore)];
  const changed = places.filter((_, index) => isChanged[index]);
  if (changed.length === 0) return verdictAmong(calls, isTest);
  const verdicts = changed.map((place) => {
    const verdict = verdictAmong(concerning(calls, place, places), (call) => isTest(call) && isTestOf(call, place, places));
    return `${verdict} (in ${named(place.projectPath, 200)})`;
  });
  const doubts = verdicts.filter((verdict) => !verdict.startsWith(PROVEN));
  return doubts.length > 0 ? doubts.join("; ") : `${PROVEN} ${verdicts.map((each) => each.slice(PROVEN.length + 1)).join(", ")}`;
}

const PROVEN = "done;";

/** Nobody can see what a shell command changed, so one that may have changed something counts like a written file. */
function verdictOf({ command, exitCode }: RunCommand, tested: ToolCall, since: readonly ToolCall[]): string {
  const shown = `\`${oneLine(command, MAX_COMMAND).replaceAll("`", "'")}\``;
  if (exitCode === null) return `claimed done, but ${shown} was the last test command and did not end by itself`;
  if (exitCode !== 0) return `claimed done, but ${shown} last exited ${exitCode}`;
  const { exitCodeIsTests, isFollowed } = detectTests(commandOf(tested.args));
  if (!exitCodeIsTests) return `claimed done; ${shown} exited 0, but what stands around the tests hides their own code`;
  const files = [...new Set(filesWritten(since).map(clip))];
  if (files.length > 0) return `claimed done; ${shown} exited 0, but ${namedList(files, 3)} was written after it`;
  if (isFollowed || since.some((call) => isCommand(call) && !isReadOnlyCommand(commandOf(call.args))))
    return `claimed done; ${shown} exited 0, but commands ran after it`;
  return `done; ${shown} last exited 0`;
}

/** A few lines for a person or a model. */
export function formatEvidence(evidence: TaskEvidence, status: Task["status"]): string {
  const { commands, verdict, alongside, byOthers = [], others = [] } = evidence;
  const shown = commands.slice(-8).map((each) => `  ${oneLine(each.command, 120)} → ${each.exitCode ?? showCommand(each).words}`);
  return [
    ...(verdict ? [`Verdict: ${verdict}.`] : []),
    formatFiles(evidence),
    ...others.map(formatOther),
    ...formatBranch(evidence, status),
    ...(byOthers.length > 0
      ? [
          `Changed meanwhile by others, not by this task: ${namedList(
            byOthers.map(({ file, task }) => `${file} (${task})`),
            20,
          )}.`,
        ]
      : []),
    ...(alongside?.length ? [`Other tasks worked in the same folder meanwhile: ${alongside.join(", ")}.`] : []),
    commands.length === 0 ? "Commands run: none." : `Commands run (${commands.length}) and their exit codes:`,
    ...shown,
  ].join("\n");
}

/** What was changed in another repository. */
function formatOther({ projectPath, treeAfter, filesChanged }: NonNullable<TaskEvidence["others"]>[number]): string {
  const files = filesChanged.length === 0 ? "none" : namedList(filesChanged, 20);
  return `In ${named(projectPath, 300)}: ${treeAfter === null ? "unknown, git could not tell" : files}.`;
}

function formatBranch({ branch, base, treeBefore, treeAfter, others }: TaskEvidence, status: Task["status"]): string[] {
  if (branch === undefined || base === undefined) return [];
  if (others)
    return [
      `What was changed is in each repository on the branch ${branch}. To take it: git merge ${branch}, the other repositories first.`,
    ];
  if (treeAfter === treeBefore) return ["It had a worktree of its own, and left nothing in it."];
  const look = `In the project's folder, to look: git diff ${base.slice(0, 12)} ${branch}`;
  if (status !== "done") return [`What was done until then is on the branch ${branch}. ${look}`];
  return [`The result is on the branch ${branch}. ${look}; to take it: git merge ${branch}`];
}

function formatFiles({ filesChanged, treeBefore, treeAfter }: TaskEvidence): string {
  if (treeBefore === null)
    return "Files changed: unknown, git could not tell: there is no repository, or it leaves this folder out, or it is not in order.";
  if (treeAfter === null) return "Files changed: unknown, git could not tell at the end.";
  return `Files changed, by git's account: ${filesChanged.length === 0 ? "none" : namedList(filesChanged, 20)}.`;
}
