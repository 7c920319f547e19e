import { relative, sep } from "node:path";
import { exactly } from "../../lib/glob.ts";
import { locate, realOf } from "../../lib/real-path.ts";
import { visible, visibleLine } from "../../lib/visible.ts";
import type { ScopeOffer } from "../../protocol/approvals.ts";
import { canonical } from "../audit.ts";
import type { PathGuard } from "../guard.ts";
import type { Tool, ToolScope } from "../tool.ts";
import { diffOf } from "./diff.ts";
import type { Subject } from "./rules.ts";
import { patternFor, readShellLine } from "./shell-lines.ts";

/** What a call wants, in words for a person and for rules. */
export interface Wants {
  subject: Subject;
  summary: string;
  command?: string;
  path?: string;
  diff?: () => Promise<string>;
  cwd: string;
  /** Why it is past the wall, if it is. */
  past?: string;
  /** Whether a rule about what it names also takes it past the wall. */
  ruleReaches: boolean;
  /** The patterns that a wider decision would keep. */
  patterns: { task?: string; project?: string };
  /** The only place that it may write in, once it is allowed. */
  within?: string;
  /** The arguments with the places in them as they were shown. */
  args: Record<string, unknown>;
}

const MOST = 20_000;
const LINE = 300;
/** Tools whose every call may be allowed at once: what they do stays inside IO and can be undone. */
const WHOLE = new Set(["wiki_write", "squad_delegate", "squad_log_decision", "squad_analyze"]);

/** Tells what a call wants; undefined for one that is refused whatever anybody says. */
export function wantsOf(tool: Tool, args: Record<string, unknown>, scope: ToolScope, guard: PathGuard): Wants | undefined {
  switch (tool.name) {
    case "shell":
      return shellWants(args as { command: string; working_dir?: string }, scope);
    case "file_ops":
      return fileWants(args as { operation: string; path: string; content?: string }, scope, guard);
    case "web_fetch":
      return fetchWants(args as { url: string }, scope);
    default:
      return otherWants(tool.name, args, scope);
  }
}

/** The folder that a call may write in without asking, in the modes that ask. */
export function borderOf({ cwd, within, project }: ToolScope): string {
  return realOf(within ?? project ?? cwd);
}

export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

function shellWants(args: { command: string; working_dir?: string }, scope: ToolScope): Wants {
  const line = readShellLine(args.command);
  const cwd = realOf(args.working_dir === undefined ? scope.cwd : locate(args.working_dir, scope.cwd));
  const border = borderOf(scope);
  const past =
    isInside(cwd, border) || isInside(cwd, realOf(scope.cwd)) ? undefined : `it would run in ${cwd}, outside ${border}`;
  const pattern = patternFor(line);
  return {
    subject: { tool: "shell", names: [line.whole], spelled: [], line },
    summary: visibleLine(line.whole, LINE),
    command: visible(args.command),
    cwd,
    // Where a person lets it work, it may write, as it may in its project.
    ...(past && { past, within: cwd }),
    ruleReaches: false,
    patterns: past || pattern.length > 1_000 ? {} : { task: pattern, project: pattern },
    args: args.working_dir === undefined ? args : { ...args, working_dir: cwd },
  };
}

function fileWants(
  args: { operation: string; path: string; content?: string },
  scope: ToolScope,
  guard: PathGuard,
): Wants | undefined {
  const { operation, content = "" } = args;
  const isWrite = operation === "write";
  const reached = guard.reach(args.path, isWrite ? "write" : "read", scope.cwd);
  if ("refusal" in reached) return undefined;
  const { real } = reached;
  const border = borderOf(scope);
  const isIn = isInside(real, border);
  const below = relative(realOf(scope.cwd), real);
  const size = isWrite ? ` (${Buffer.byteLength(content)} bytes)` : "";
  return {
    subject: {
      tool: "file_ops",
      names: below.startsWith("..") || below === "" ? [real] : [real, below],
      spelled: [args.path],
    },
    summary: visibleLine(`${operation} ${real}${size}`, LINE),
    path: visible(real),
    ...(isWrite && { diff: async () => visible(await diffOf(real, content, MOST)), within: real }),
    cwd: scope.cwd,
    ...(isWrite && !isIn && { past: `it would write ${visible(real)}, outside ${border}` }),
    ruleReaches: true,
    patterns: { task: isIn ? `${exactly(border)}${sep}*` : exactly(real), project: exactly(real) },
    args,
  };
}

function fetchWants(args: { url: string }, scope: ToolScope): Wants {
  const url = URL.canParse(args.url) ? new URL(args.url) : undefined;
  const pattern = url && `${exactly(url.origin)}/*`;
  return {
    subject: { tool: "web_fetch", names: url ? [url.href] : [], spelled: [args.url] },
    summary: visibleLine(args.url, LINE),
    command: visible(args.url),
    cwd: scope.cwd,
    ruleReaches: true,
    patterns: pattern === undefined ? {} : { task: pattern, project: pattern },
    args,
  };
}

function otherWants(name: string, args: Record<string, unknown>, scope: ToolScope): Wants {
  const text = canonical(args);
  const whole = visible(text);
  return {
    subject: { tool: name, names: [text], spelled: [] },
    summary: visibleLine(text, LINE),
    command: whole.length <= MOST ? whole : `${whole.slice(0, MOST)}\n… (${whole.length - MOST} more characters)`,
    cwd: scope.cwd,
    ruleReaches: true,
    patterns: WHOLE.has(name) ? { task: "*", project: "*" } : {},
    args,
  };
}

/** The wider scopes of a question, with the rule that each would write. */
export function offersFor({ subject: { tool }, patterns }: Wants, owner: string, project: string): ScopeOffer[] {
  const { task, project: whole } = patterns;
  return [
    ...(task === undefined
      ? []
      : [{ scope: "task" as const, match: task, rule: `allow ${tool} "${task}" for the rest of ${owner}` }]),
    ...(whole === undefined ? [] : [{ scope: "project" as const, match: whole, rule: `allow ${tool} "${whole}" in ${project}` }]),
  ];
}
