import { homedir } from "node:os";
import { dirname, relative, sep } from "node:path";
import { privatePlacesAndTargets } from "../../home/private-places.ts";
import { exactly } from "../../lib/glob.ts";
import { locate, realOf } from "../../lib/real-path.ts";
import type { ScopeOffer } from "../../protocol/approvals.ts";
import { namedPlaces, readsAlone } from "../../shell/reads-alone.ts";
import { canonical } from "../audit.ts";
import { fileTargets, isLook } from "../call-targets.ts";
import { editDifference } from "../change-file.ts";
import { diffOf } from "../diff.ts";
import type { Edit } from "../edit-text.ts";
import type { PathGuard } from "../guard.ts";
import type { Tool, ToolScope } from "../tool.ts";
import type { Subject } from "./rules.ts";
import { patternFor, readShellLine, type ShellLine } from "./shell-lines.ts";
import type { Show } from "./show.ts";

/** What a call wants to do, in terms for a person and for rules. */
export interface Wants {
  subject: Subject;
  summary: string;
  command?: string;
  path?: string;
  diff?: () => Promise<string>;
  cwd: string;
  /** Why it goes beyond the sandbox, if it does. */
  past?: string;
  /** Whether a rule about what it names also lets it go beyond the sandbox. */
  ruleReaches: boolean;
  /** The patterns that a wider decision would store. */
  patterns: { task?: string; project?: string };
  /** The only folder that it may write in, once it is allowed. */
  within?: string;
  /** Once it is allowed, it is not held by the sandbox. */
  outside?: true;
  /** The arguments, with paths as the person was shown them. */
  args: Record<string, unknown>;
}

/** Tools whose calls may all be allowed at once: what they do stays inside IO and can be undone. */
const WHOLE = new Set(["wiki_write", "squad_delegate", "squad_log_decision", "squad_analyze"]);

/** How a command is confined where it runs. */
interface HeldHow {
  /** There is no sandbox. */
  isUnwalled?: boolean | undefined;
  /** It runs in the terminal of the user's editor. */
  inTerminal?: boolean | undefined;
  /** The host that it runs on, if that is another one. */
  worker?: string | undefined;
}

/** Describes what a call wants; undefined if it is refused whatever anybody says. */
export function wantsOf(
  tool: Tool,
  args: Record<string, unknown>,
  scope: ToolScope,
  { guard, show, ...how }: { guard: PathGuard; show: Show } & HeldHow,
): Wants | undefined {
  switch (tool.name) {
    case "shell":
      return shellWants(args as ShellArguments, scope, { show, ...how, ioHome: guard.own.paths.home });
    case "file_ops":
      return fileWants(args, scope, guard, show);
    case "web_fetch":
      return fetchWants(args as { url: string }, scope, show);
    default:
      return tool.server === undefined ? otherWants(tool.name, args, scope, show) : serverWants(tool, args, scope, show);
  }
}

/** The folder that a call may write in without asking, in the modes that ask. */
export function borderOf({ cwd, within, project }: ToolScope): string {
  return realOf(within ?? project ?? cwd);
}

/** Whether a call may write to a path without asking: inside its border, or in another worktree of the same work. */
const isOwnPlace = (path: string, scope: ToolScope): boolean =>
  [borderOf(scope), ...(scope.besides ?? []).map((folder) => realOf(folder))].some((folder) => isInside(path, folder));

export function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

type ShellArguments = { command: string; working_dir?: string; outside?: boolean };

function shellWants(
  args: ShellArguments,
  scope: ToolScope,
  { show, isUnwalled, inTerminal, worker, ioHome }: { show: Show; ioHome: string } & HeldHow,
): Wants {
  const line = readShellLine(args.command);
  const cwd = realOf(args.working_dir === undefined ? scope.cwd : locate(args.working_dir, scope.cwd));
  const border = borderOf(scope);
  const isElsewhere = !isOwnPlace(cwd, scope) && !isInside(cwd, realOf(scope.cwd));
  // The worker's home and the targets of its links are not known here.
  const mayWrite = isUnwalled && (worker !== undefined || !readsAlone(line.plain, { cwd, home: homedir(), border, ioHome }));
  const host = inTerminal ? " in the editor's terminal" : worker === undefined ? "" : ` on the worker ${worker}`;
  const past = args.outside
    ? `it wants to run outside the sandbox${host}${namedOutside(line, { cwd, border, show })}`
    : isElsewhere
      ? `it would run${host} in ${show.line(cwd)}, outside ${show.line(border)}`
      : mayWrite
        ? `there is no sandbox${host || " on this machine"}, and it may do more than read`
        : undefined;
  const isOnce = args.outside === true || isElsewhere;
  const pattern = patternFor(line);
  return {
    subject: { tool: "shell", names: [line.whole], spelled: [], line },
    summary: show.line(line.whole),
    command: show(args.command),
    cwd,
    // Where a person lets it work, it may write, as in its project.
    ...(past && { past }),
    ...(isElsewhere && { within: cwd }),
    ...((args.outside || isUnwalled) && { outside: true }),
    ruleReaches: !isOnce,
    patterns: isOnce || pattern.length > 1_000 ? {} : { task: pattern, project: pattern },
    args: args.working_dir === undefined ? args : { ...args, working_dir: cwd },
  };
}

/** The places outside the border that a command line names, for a person to read. */
function namedOutside(line: ShellLine, { cwd, border, show }: { cwd: string; border: string; show: Show }): string {
  const places = namedPlaces(line, { cwd, home: homedir() }).filter((place) => !isInside(place, border));
  const some = places.slice(0, 3).map((place) => show.line(place));
  return some.length === 0 ? "" : `, and names ${some.join(", ")}${places.length > 3 ? " and more" : ""}`;
}

function fileWants(args: Record<string, unknown>, scope: ToolScope, guard: PathGuard, show: Show): Wants | undefined {
  const { operation, content, edits } = args as { operation: string; content?: string; edits?: Edit[] };
  const targets = fileTargets(args, scope, guard);
  const places = targets.flatMap(({ reached }) => ("real" in reached ? [reached.real] : []));
  const [real] = places;
  if (real === undefined || places.length < targets.length) return undefined;
  const isEffect = !isLook(operation);
  const border = borderOf(scope);
  const outside = places.filter((each) => !isOwnPlace(each, scope));
  const namesOf = (place: string) => {
    const below = relative(realOf(scope.cwd), place);
    return below.startsWith("..") || below === "" ? [place] : [place, below];
  };
  const also = places[1] === undefined ? undefined : namesOf(places[1]);
  // A move or delete acts on an entry of a folder: a link is not followed, and a rule about everything in a folder also covers
  // the folder.
  const isEntry = operation === "move" || operation === "delete";
  const inside = isEntry ? places.flatMap(namesOf).map((name) => `${name}${sep}`) : [];
  const closed = isEffect ? [] : privatePlacesAndTargets(homedir());
  const secret = places.find((place) => closed.some((each) => isInside(place, each)));
  const size = content === undefined ? "" : ` (${Buffer.byteLength(content)} bytes)`;
  const diff = edits ? () => editDifference(real, edits) : async () => diffOf(real, content ?? "");
  return {
    subject: { tool: "file_ops", names: namesOf(real), also, spelled: [...targets.map(({ path }) => path), ...inside] },
    summary: show.line(`${operation} ${places.join(" to ")}${size}`),
    path: show.line(real),
    ...((operation === "write" || operation === "edit") && { diff: async () => show(await diff()) }),
    ...(isEffect && { within: commonFolder(isEntry ? places.map(dirname) : places) }),
    cwd: scope.cwd,
    ...(isEffect &&
      outside.length > 0 && { past: `it would ${VERBS[operation]} ${show.line(outside[0]!)}, outside ${show.line(border)}` }),
    ...(secret && { past: `it would read ${show.line(secret)}, where keys or passwords are kept` }),
    ruleReaches: places.length === 1,
    patterns: patternsFor(places, border),
    args,
  };
}

const VERBS: Readonly<Record<string, string>> = { write: "write", edit: "write", move: "move", delete: "delete" };

/** A decision about a move is only for that move. */
function patternsFor(places: readonly string[], border: string): Wants["patterns"] {
  const [real, second] = places;
  if (real === undefined || second !== undefined) return {};
  return { task: isInside(real, border) ? `${exactly(border)}${sep}*` : exactly(real), project: exactly(real) };
}

/** The nearest folder that contains all of them; a single one is its own. */
function commonFolder([first = sep, ...others]: readonly string[]): string {
  let folder = first;
  while (!others.every((each) => isInside(each, folder))) folder = dirname(folder);
  return folder;
}

function fetchWants(args: { url: string }, scope: ToolScope, show: Show): Wants {
  const url = URL.canParse(args.url) ? new URL(args.url) : undefined;
  const pattern = url && `${exactly(url.origin)}/*`;
  const address = url?.href ?? args.url;
  return {
    subject: { tool: "web_fetch", names: url ? [url.href] : [], spelled: [args.url] },
    summary: show.line(address),
    command: show(address),
    cwd: scope.cwd,
    ruleReaches: true,
    patterns: pattern === undefined ? {} : { task: pattern, project: pattern },
    args,
  };
}

function otherWants(name: string, args: Record<string, unknown>, scope: ToolScope, show: Show): Wants {
  const text = canonical(args);
  return {
    subject: { tool: name, names: [text], spelled: [] },
    summary: show.line(text),
    command: show(text),
    cwd: scope.cwd,
    ruleReaches: true,
    patterns: WHOLE.has(name) ? { task: "*", project: "*" } : {},
    args,
  };
}

/** An MCP server works outside IO's sandbox; only what a person declared to be a read counts as inside. */
function serverWants(tool: Tool, args: Record<string, unknown>, scope: ToolScope, show: Show): Wants {
  return {
    ...otherWants(tool.name, args, scope, show),
    ...(tool.kind !== "read" && { past: `the MCP server ${show.line(tool.server ?? "")} works outside the sandbox` }),
    patterns: { task: "*", project: "*" },
  };
}

/** The wider scopes offered with a question, each with the rule that it would store. */
export function offersFor(
  { subject: { tool }, patterns }: Wants,
  { owner, project, show }: { owner: string; project: string; show: Show },
): ScopeOffer[] {
  const { task, project: whole } = patterns;
  const rule = (match: string) => `allow ${tool} "${show(match)}"`;
  return [
    ...(task === undefined ? [] : [{ scope: "task" as const, match: task, rule: `${rule(task)} for the rest of ${owner}` }]),
    ...(whole === undefined
      ? []
      : [{ scope: "project" as const, match: whole, rule: `${rule(whole)} in ${show.line(project)}` }]),
  ];
}
