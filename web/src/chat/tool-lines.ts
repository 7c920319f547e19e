import type { Approval } from "../../../src/protocol/approvals.ts";
import { callSummary } from "../../../src/protocol/call-summary.ts";
import type { ToolUse } from "../../../src/protocol/messages.ts";
import { type CallState, exitCodeIn, type ShownState, showState, stateAtTheEnd } from "../../../src/protocol/shown-state.ts";
import { lineDiff } from "../diff/line-diff.ts";
import * as icons from "../lib/icons.ts";

/** A call as recorded in the journal. */
export interface Call {
  tool: string;
  args: string;
  state: CallState;
  result: string | null;
  durationMs: number | null;
}

/** A tool call in one line, and the details below it. */
export interface ToolLine {
  tool: string;
  icon: string;
  words: string;
  /** Undefined if only the tool's name is known. */
  shown: ShownState | undefined;
  isRunning: boolean;
  durationMs: number | null;
  /** The end of its output. */
  output: string | undefined;
  /** A unified diff. */
  diff: string | undefined;
  path: string | undefined;
  raw: { args: string; result: string | null } | undefined;
}

const ICONS: [RegExp, string][] = [
  [/^shell/, icons.terminal],
  [/^file_ops$/, icons.file],
  [/^web_/, icons.globe],
  [/^wiki_|^skill/, icons.book],
  [/^squad_/, icons.people],
  [/^swarm_|^github$/, icons.branch],
  [/^schedule_/, icons.clock],
  [/^todo$/, icons.task],
];
const VERBS: Record<string, string> = {
  ...{ shell: "$", file_ops: "", github: "GitHub", web_fetch: "fetch", conversation_search: "search what was said:" },
  ...{ wiki_read: "read page", wiki_write: "write page", wiki_search: "search the wiki:", wiki_delete: "delete page" },
  ...{
    wiki_list: "list the wiki's pages",
    wiki_source: "look at source",
    skill: "read skill",
    squad_delegate: "delegate to",
    squad_create: "make squad",
  },
  ...{
    squad_recall: "recall squad",
    squad_status: "look at the squads",
    squad_agents: "look at the agents of",
    todo: "plan the steps",
  },
  ...{ squad_add_agent: "add an agent to", squad_remove_agent: "remove an agent from", squad_delete: "delete squad" },
  ...{ squad_log_decision: "log a decision of", squad_analyze: "analyse", squad_task_status: "look at task" },
  ...{ squad_task_cancel: "cancel task", swarm_run: "start a run:", swarm_status: "look at the runs", config_update: "set" },
  ...{ schedule_add: "schedule", schedule_list: "list the schedules", schedule_remove: "remove schedule" },
  ...{ skill_list: "list the skills", skill_install: "install skill", skill_remove: "remove skill" },
  ...{
    skill_search: "search for skills:",
    check_update: "look for an update",
    rule_add: "add a rule:",
    shell_output: "output of",
    shell_stop: "stop",
  },
};

/** Describes a call the way a person would: `$ npm test`, `edit src/cart.ts`. */
export const wordsOf = (tool: string, summary: string): string => `${VERBS[tool] ?? tool} ${summary}`.trim() || tool;

const iconOf = (tool: string) => ICONS.find(([names]) => names.test(tool))?.[1] ?? icons.tool;

export function lineOfUse({ tool, state: heard, args, output, exitCode, diff }: ToolUse, isOver = false): ToolLine {
  const state = isOver ? stateAtTheEnd(heard) : heard;
  return {
    ...{ tool, icon: iconOf(tool), words: wordsOf(tool, args ?? "") },
    shown: showState({ kind: "call", state, exitCode }),
    isRunning: state === "started",
    ...{ durationMs: null, output, path: diff?.path, raw: undefined },
    diff: diff && lineDiff(diff.path, diff.before ?? "", diff.after),
  };
}

export function lineOfCall({ tool, args, state, result, durationMs }: Call): ToolLine {
  const text = result === null ? undefined : withoutMarks(result);
  const hunks = tool === "file_ops" && text ? text.slice(Math.max(0, text.search(/^@@ /m))) : "";
  return {
    ...{ tool, icon: iconOf(tool), words: wordsOf(tool, callSummary(tool, args)) },
    shown: showState({ kind: "call", state, exitCode: exitCodeIn(result) }),
    isRunning: state === "begun",
    durationMs,
    output: tool === "shell" ? text?.replace(/^exit code: .*\n?/, "") : undefined,
    diff: hunks.startsWith("@@ ") ? hunks : undefined,
    path: /"path":"((?:[^"\\]|\\.)*)"/.exec(args)?.[1],
    raw: { args, result },
  };
}

/** A line for a call of which only the tool's name is known until the journal is loaded. */
export const lineOfName = (tool: string): ToolLine => ({
  ...{ tool, icon: iconOf(tool), words: wordsOf(tool, "") === "$" ? tool : wordsOf(tool, "") },
  ...{
    shown: undefined,
    isRunning: false,
    durationMs: null,
    output: undefined,
    diff: undefined,
    path: undefined,
    raw: undefined,
  },
});

/** The journal's lines, with the diffs received while the turn was running. */
export function merged(journal: readonly ToolLine[], heard: readonly ToolLine[]): ToolLine[] {
  if (journal.length !== heard.length) return [...journal];
  return journal.map((line, at) => {
    const live = heard[at];
    return live?.tool === line.tool && live.diff !== undefined ? { ...line, diff: live.diff, path: live.path } : line;
  });
}

/** Leaves out the calls that wait for approval, since the approval card already shows them. */
export function withoutAsked(lines: readonly ToolLine[], asked: readonly Pick<Approval, "tool" | "command">[]): ToolLine[] {
  const waiting = lines.filter(({ isRunning, output }) => isRunning && output === undefined);
  const hidden = new Set<ToolLine>();
  for (const { tool, command } of asked) {
    const alike = waiting.filter((line) => line.tool === tool && !hidden.has(line));
    const words = command === null ? undefined : wordsOf(tool, command.replace(/\s+/g, " ").trim());
    const line = alike.length > 1 && words !== undefined ? alike.find((each) => words.startsWith(each.words)) : alike[0];
    if (line) hidden.add(line);
  }
  return lines.filter((line) => !hidden.has(line));
}

/** Removes the marks around untrusted text, which are meant for the model. */
const withoutMarks = (text: string): string => text.replace(/^--- (?:data|end) [0-9a-f]{6,}\n?/gm, "");
