import { basename, dirname } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import { withFolder } from "../../lib/pinned/folder.ts";
import { statsOf } from "../../lib/pinned/list.ts";
import { createPathGuard } from "../guard.ts";
import type { FoundFile, FoundLine, FoundText, Problem, SearchJob } from "./job.ts";
import { requestedGlob } from "./path-glob.ts";
import { createReader, type Met, walkFolder } from "./walk.ts";

/** The most matching lines, in all and in one file. */
export const MOST_LINES = 100;
const MOST_IN_FILE = 20;
/** The largest file that is searched, in bytes. */
export const LARGEST = 10_000_000;
const LINE = 250;
/** How many characters of a long line are shown before the match. */
const BEFORE = 80;

interface Pattern {
  /** Whether a file can contain a match at all. */
  isIn: (bytes: Buffer) => boolean;
  /** Where the match begins in a line, or -1. */
  at: (line: string) => number;
}

/** The matching lines of the files below a folder. */
export function findText(job: SearchJob): FoundText | Problem {
  const { root, glob, forMs, own, share, shares, context } = job;
  const until = performance.now() + forMs;
  const isLate = () => performance.now() > until;
  const pattern = job.isRegex ? regexPattern(job.query) : literalPattern(job.query);
  if ("problem" in pattern) return pattern;
  const fits = glob === undefined ? () => true : requestedGlob(glob, root);
  const readFile = createReader(createPathGuard({ ...own, selfEdit: () => false }), LARGEST);
  const skipped = { binary: 0, large: 0, unreadable: 0 };
  const files: FoundFile[] = [];
  let room = MOST_LINES;

  const search = (met: Pick<Met, "folder" | "name" | "parts">) => {
    const content = readFile(met, pattern.isIn);
    if (content === undefined) return;
    if ("why" in content) {
      // Not even the existence of a secret is reported.
      if (content.why !== "secret") skipped[content.why] += 1;
      return;
    }
    const found = linesWith(content.bytes.toString("utf8"), pattern, context, Math.min(room, MOST_IN_FILE));
    if (found.lines.length === 0) return;
    files.push({ parts: [...met.parts], ...found });
    room -= found.lines.filter(({ isMatch }) => isMatch).length;
  };

  if (isFile(root)) {
    if (share === 0) withFolder(dirname(root), (folder) => search({ folder, name: basename(root), parts: [basename(root)] }));
    return { files, isFull: false, isLate: false, left: { ignored: 0, ...skipped } };
  }
  const { left, ending } = walkFolder({
    ...{ root, share, shares, isLate },
    visit(met) {
      if (met.kind !== "file" || !fits(met.parts)) return undefined;
      if (room === 0) return "stopped";
      if (isLate()) return "late";
      search(met);
      return undefined;
    },
  });
  const unreadable = left.unreadable + skipped.unreadable;
  return { files, isFull: ending === "stopped", isLate: ending === "late", left: { ...left, ...skipped, unreadable } };
}

function isFile(path: string): boolean {
  return dirname(path) !== path && withFolder(dirname(path), (folder) => statsOf(folder, basename(path)))?.isFile() === true;
}

function literalPattern(query: string): Pattern {
  const bytes = Buffer.from(query, "utf8");
  return { isIn: (content) => content.includes(bytes), at: (line) => line.indexOf(query) };
}

function regexPattern(query: string): Pattern | Problem {
  // How other tools spell that case does not matter.
  const [, ignoresCase, source = query] = /^(\(\?i\))?(.*)$/s.exec(query) ?? [];
  try {
    const flags = `${ignoresCase === undefined ? "" : "i"}${/\\[pP]\{/.test(source) ? "u" : ""}`;
    const whole = new RegExp(source, `${flags}m`);
    const line = new RegExp(source, flags);
    const first = Buffer.from(ignoresCase === undefined ? beginningOf(source) : "");
    return {
      isIn: (content) => content.includes(first) && whole.test(content.toString("utf8")),
      at: (text) => line.exec(text)?.index ?? -1,
    };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** What every match of an expression begins with; most files do not contain it and need not be decoded. */
function beginningOf(source: string): string {
  const [, start = "", letters = ""] = /^(\^|\\b|)([\w ]{0,200})/.exec(source) ?? [];
  if (source.includes("|")) return "";
  const next = source[start.length + letters.length];
  return next !== undefined && "*+?{".includes(next) ? letters.slice(0, -1) : letters;
}

/** The matching lines, with the lines around them. */
function linesWith(text: string, { at }: Pattern, context: number, most: number): Omit<FoundFile, "parts"> {
  const all = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  // There is no line after the last line end.
  if (all.at(-1) === "") all.pop();
  const shown = new Map<number, FoundLine>();
  let matches = 0;
  let more = 0;
  for (const [index, line] of all.entries()) {
    const start = at(line);
    if (start < 0) continue;
    if (matches === most) {
      more += 1;
      continue;
    }
    matches += 1;
    for (let near = Math.max(0, index - context); near <= Math.min(all.length - 1, index + context); near += 1)
      if (!shown.has(near)) shown.set(near, { number: near + 1, text: clip(all[near]!, 0), isMatch: false });
    shown.set(index, { number: index + 1, text: clip(line, start), isMatch: true });
  }
  return { lines: [...shown.values()].sort((a, b) => a.number - b.number), more };
}

function clip(line: string, around: number): string {
  const from = line.length <= LINE ? 0 : Math.max(0, around - BEFORE);
  const cut = line.slice(from, from + LINE);
  return `${from > 0 ? "…" : ""}${cut}${from + LINE < line.length ? "…" : ""}`;
}
