import { availableParallelism } from "node:os";
import { offThread } from "../../lib/off-thread.ts";
import { named, oneLine, quoted } from "../../lib/quoted.ts";
import { asData } from "../../lib/untrusted.ts";
import type { PathGuard } from "../guard.ts";
import { type ToolContext, ToolError } from "../tool.ts";
import { MOST_PATHS } from "./find-paths.ts";
import { LARGEST, MOST_LINES } from "./find-text.ts";
import type { FindJob, FoundFile, FoundPaths, FoundText, Problem, SearchJob } from "./job.ts";
import { elsewhere, leavesFolder } from "./path-glob.ts";

const WORKER = "tools/search/worker.js";
/** A search checks its time between files; one that is stuck within a file is stopped after this multiple of its time. */
const OVERTIME = 1.2;
const MOST_THREADS = 4;
const MOST_SHOWN = 8_000;

export interface SearchWanted {
  query: string;
  glob?: string | undefined;
  regex?: boolean | undefined;
  context?: number | undefined;
}

/** The folder that is searched. */
export interface SearchFolder {
  /** As the model spelled it. */
  path: string;
  real: string;
}

export interface SearchDeps extends Pick<ToolContext, "signal" | "whyNot"> {
  guard: PathGuard;
  forMs: number;
}

/** Finds lines in the files below a folder, in separate threads: no pattern and no file can block anything else. */
export async function searchFiles(
  { query, glob, regex = false, context = 0 }: SearchWanted,
  { path, real }: SearchFolder,
  { guard, forMs, signal, whyNot }: SearchDeps,
): Promise<string> {
  if (!regex && /[\r\n]/.test(query)) throw new ToolError("query: a search goes line by line; look for one line of it.");
  if (glob !== undefined) checkGlob(glob, path);
  const job = { root: real, query, glob, isRegex: regex, context, forMs, own: guard.own };
  const found = await sideBySide<SearchJob, FoundText | Problem>(job, signal);
  const parts = found.map((each) => {
    if (each === undefined) throw tooLong(forMs, regex);
    if ("problem" in each) throw new ToolError(`query: is no regular expression: ${oneLine(each.problem, 300)}.`);
    return each;
  });
  const all = parts.flatMap(({ files }) => files).sort((a, b) => (isBefore(a.parts, b.parts) ? -1 : 1));
  // The user's rules about a file also apply to what is shown of it here.
  const files = all.filter((file) => !whyNot?.({ operation: "read", path: [real, ...file.parts].join("/") }));
  const { text, lines, isCut } = showFiles(files);
  const sum = (count: (left: FoundText["left"]) => number) => parts.reduce((all, { left }) => all + count(left), 0);
  const isFull = isCut || parts.some((part) => part.isFull);
  const isLate = parts.some((part) => part.isLate);
  const notes = [
    lines === 0
      ? `No line in ${named(path, 300)} holds ${quoted(query, 100)}.`
      : isFull
        ? `Only the first ${lines} lines are shown; narrow the search with path or glob to see more.`
        : `${count(lines, "line")} in ${count(files.length, "file")}.`,
    ...(isLate ? [`The search ended after ${forMs / 1_000} s; the rest was not searched.`] : []),
    ...notSearched([
      [all.length - files.length, "kept back by a rule"],
      [sum(({ ignored }) => ignored), "ignored"],
      [sum(({ binary }) => binary), "binary"],
      [sum(({ large }) => large), `over ${LARGEST / 1_000_000} MB`],
      [sum(({ unreadable }) => unreadable), "unreadable"],
    ]),
  ];
  return `${lines === 0 ? "" : `${asData(text)}\n`}[${notes.join(" ")}]`;
}

/** Finds files and folders by a pattern for their paths. */
export async function findFiles(
  glob: string,
  { path, real }: SearchFolder,
  { guard, forMs, signal }: SearchDeps,
): Promise<string> {
  checkGlob(glob, path);
  const found = await sideBySide<FindJob, FoundPaths>({ root: real, glob, forMs, own: guard.own }, signal);
  const parts = found.map((each) => {
    if (each === undefined) throw tooLong(forMs, false);
    return each;
  });
  const all = parts
    .flatMap((part) => part.paths.map((each) => ({ each, names: each.split("/") })))
    .sort((a, b) => (isBefore(a.names, b.names) ? -1 : 1));
  const paths = all.slice(0, MOST_PATHS).map(({ each }) => each);
  const isFull = paths.length < all.length || parts.some((part) => part.isFull);
  const isLate = parts.some((part) => part.isLate);
  const sum = (count: (left: FoundPaths["left"]) => number) => parts.reduce((whole, { left }) => whole + count(left), 0);
  const shown = fitting(paths.map((each) => named(each, 1_000)));
  const notes = [
    paths.length === 0
      ? `Nothing in ${named(path, 300)} fits ${quoted(glob, 100)}.${/^~?\//.test(glob) ? ` ${howElsewhere(glob, path)}` : ""}`
      : isFull || shown.length < paths.length
        ? `Only the first ${shown.length} are shown; narrow the pattern or the path to see more.`
        : `${paths.length} found.`,
    ...(isLate ? [`The search ended after ${forMs / 1_000} s; the rest was not looked at.`] : []),
    ...notSearched([
      [sum(({ ignored }) => ignored), "ignored"],
      [sum(({ unreadable }) => unreadable), "unreadable"],
    ]),
  ];
  return `${paths.length === 0 ? "" : `${asData(shown.join("\n"))}\n`}[${notes.join(" ")}]`;
}

/** Refuses a pattern that leaves the searched folder: that nothing fits it would be misleading. */
function checkGlob(glob: string, path: string): void {
  if (leavesFolder(glob)) throw new ToolError(`glob: ${quoted(glob, 100)} leaves the folder. ${howElsewhere(glob, path)}`);
}

function howElsewhere(glob: string, path: string): string {
  const other = elsewhere(glob, path);
  const instead = leavesFolder(other.glob)
    ? "that folder as path"
    : `path ${quoted(other.path, 300)} and glob ${quoted(other.glob, 100)}`;
  return `A pattern is relative to path and cannot leave it: for another folder give ${instead}.`;
}

/** Runs the job in several threads, each with its share. */
function sideBySide<J extends FindJob | SearchJob, T>(
  job: Omit<J, "share" | "shares">,
  signal: AbortSignal,
): Promise<(T | undefined)[]> {
  const shares = Math.min(MOST_THREADS, availableParallelism());
  const options = { deadlineMs: job.forMs * OVERTIME, signal };
  return Promise.all(Array.from({ length: shares }, (_, share) => offThread<T>(WORKER, { ...job, share, shares }, options)));
}

function tooLong(forMs: number, isRegex: boolean): ToolError {
  const advice = isRegex ? "Search for a plain text, or a simpler expression" : "Look in a smaller folder, with path";
  return new ToolError(`The search did not end within ${(forMs * OVERTIME) / 1_000} s and was stopped. ${advice}.`);
}

/** Compares in the order in which the tree is walked. */
function isBefore(a: readonly string[], b: readonly string[]): boolean {
  const at = a.findIndex((part, index) => part !== b[index]);
  return at < 0 ? a.length < b.length : b[at] !== undefined && a[at]! < b[at];
}

/** Shows the lines file by file with their numbers: matches after a colon, lines around them after a dash. */
function showFiles(files: readonly FoundFile[]): { text: string; lines: number; isCut: boolean } {
  const out: string[] = [];
  let lines = 0;
  let size = 0;
  const add = (text: string) => {
    out.push(text);
    size += text.length + 1;
  };
  for (const { parts, lines: own, more } of files) {
    if (lines >= MOST_LINES || size > MOST_SHOWN) return { text: out.join("\n"), lines, isCut: true };
    add(named(parts.join("/"), 1_000));
    for (const [index, { number, text, isMatch }] of own.entries()) {
      if (size > MOST_SHOWN) return { text: out.join("\n"), lines, isCut: true };
      if (index > 0 && own[index - 1]!.number < number - 1) add("--");
      add(`${number}${isMatch ? ":" : "-"}${text}`);
      if (isMatch) lines += 1;
    }
    if (more > 0) add(`… ${count(more, "more line")} in this file`);
  }
  return { text: out.join("\n"), lines, isCut: false };
}

function fitting(paths: readonly string[]): string[] {
  let room = 2 * MOST_SHOWN;
  return paths.filter((path) => {
    room -= path.length + 1;
    return room >= 0;
  });
}

function notSearched(reasons: readonly (readonly [number, string])[]): string[] {
  const said = reasons.filter(([number]) => number > 0).map(([number, why]) => `${number} ${why}`);
  return said.length === 0 ? [] : [`Not looked into: ${said.join(", ")}.`];
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;
