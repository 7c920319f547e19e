import { createBreath } from "../../lib/breath.ts";
import { type Folder, openBelow } from "../../lib/pinned/folder.ts";
import { eachEntryOf, statsOf } from "../../lib/pinned/list.ts";
import { readPlain } from "../../lib/pinned/read.ts";
import { createNames, type TestReport } from "./report.ts";

export const JUNIT = "JUnit XML";

const MOST_FOLDERS = 5_000;
const MOST_FILES = 2_000;
const LARGEST = 5_000_000;
const MOST_BYTES = 50_000_000;
const DEEPEST = 10;
/** File system clocks advance in steps, so a file may seem a little older than it is. */
const STEP_MS = 10;

const NOT_ENTERED = /^(?:\..*|node_modules|bower_components|vendor|venv|__pycache__|site-packages)$/;
const REPORTS = /(?:^|\/)(?:(?:surefire|failsafe|test|junit)-reports?|(?:test|junit)-results?|junit|reports?|results)(?:\/|$)/i;
const REPORT = /^TEST-|junit|tests?[-_.]?(?:results?|reports?)/i;

/** Gradle skips what did not change, and keeps its earlier result files. */
const GRADLE = /\/build\/test-results(?:\/|$)/;

export interface JunitPlace {
  folder: string;
  /** When the check began: older files hold somebody else's results. */
  since: number;
  signal: AbortSignal;
}

/** Reads the JUnit XML files that were written below a folder since a check began; undefined if there are none. */
export async function readJunit({ folder, since, signal }: JunitPlace): Promise<TestReport | undefined> {
  const breathe = createBreath(signal);
  const failed = createNames();
  /** How often each name occurs. */
  const names = new Map<string, number>();
  const failing = new Set<string>();
  let passed = 0;
  let files = 0;
  let bytes = 0;
  let hasStale = false;
  let complete = true;

  async function read(from: Folder, name: string): Promise<void> {
    const stats = statsOf(from, name);
    if (!stats?.isFile()) return;
    if (Number(stats.mtimeMs) < since - STEP_MS) {
      hasStale ||= GRADLE.test(from.path);
      return;
    }
    const isTooMuch = files >= MOST_FILES || bytes + Number(stats.size) > MOST_BYTES;
    const found = isTooMuch ? undefined : readPlain(from, name, LARGEST);
    if (!found || "absent" in found) {
      complete = false;
      return;
    }
    bytes += found.bytes.length;
    const cases = await parseJunit(found.bytes.toString("utf8"), breathe);
    if (cases === "something else") {
      // With a document type, or in another encoding, it may be a report all the same.
      if (found.bytes.toString("latin1").replaceAll("\0", "").includes("<testsuite")) complete = false;
      return;
    }
    files += 1;
    if (cases === "broken") complete = false;
    for (const { name: test, state } of cases === "broken" ? [] : cases) {
      names.set(test, (names.get(test) ?? 0) + 1);
      if (state === "failed") {
        failed.add(test);
        failing.add(test);
      } else if (state === "passed") passed += 1;
    }
  }

  const waiting = [""];
  for (let at = 0; at < waiting.length && at < MOST_FOLDERS; at++) {
    const path = waiting[at]!;
    const open = openBelow(folder, path);
    if (!open) continue;
    try {
      const isForReports = REPORTS.test(path);
      for await (const entry of eachEntryOf(open, breathe)) {
        if (entry.isDirectory()) {
          if (path.split("/").length < DEEPEST && !NOT_ENTERED.test(entry.name))
            waiting.push(path === "" ? entry.name : `${path}/${entry.name}`);
        } else if (entry.isFile() && entry.name.endsWith(".xml") && (isForReports || REPORT.test(entry.name)))
          await read(open, entry.name);
      }
    } finally {
      open.close();
    }
  }
  if (waiting.length > MOST_FOLDERS) complete = false;
  if (files === 0) return undefined;
  // Which of several tests with one name failed cannot be told, nor whether one of them is a retry that passed.
  if ([...failing].some((name) => names.get(name)! > 1)) complete = false;
  // If tests were skipped because nothing changed, the number of passed ones means nothing.
  return { runner: JUNIT, failed: failed.list(), passed: hasStale ? undefined : passed, complete: complete && failed.isWhole() };
}

interface JunitCase {
  name: string;
  state: "passed" | "failed" | "skipped";
}

const ATTRIBUTE = /\s(name|classname)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const LONGEST_TAG = 20_000;

/**
 * The test cases of a JUnit XML file, in one pass from tag to tag. Files with a document type are refused, so the only entities
 * are the five that every XML has.
 */
export async function parseJunit(
  text: string,
  breathe: () => Promise<void> | undefined = () => undefined,
): Promise<JunitCase[] | "something else" | "broken"> {
  const cases: JunitCase[] = [];
  const open: string[] = [];
  let hasRoot = false;
  let at = 0;
  for (;;) {
    const start = text.indexOf("<", at);
    if (start < 0) break;
    const skipped = skip(text, start);
    if (skipped === "refused") return hasRoot ? "broken" : "something else";
    if (skipped !== undefined) {
      at = skipped;
      continue;
    }
    const end = tagEnd(text, start);
    if (end < 0) return hasRoot ? "broken" : "something else";
    const tag = text.slice(start + 1, end);
    at = end + 1;
    if (tag.startsWith("/")) {
      if (open.pop() !== tag.slice(1).trim()) return "broken";
      continue;
    }
    const name = /^[\w:.-]+/.exec(tag)?.[0] ?? "";
    if (open.length === 0) {
      if (hasRoot || !/^testsuites?$/.test(name)) return hasRoot ? "broken" : "something else";
      hasRoot = true;
    }
    if (name === "testcase") cases.push({ name: nameOf(tag), state: "passed" });
    const last = cases.at(-1);
    if (last && open.at(-1) === "testcase") {
      if (name === "failure" || name === "error") last.state = "failed";
      else if (name === "skipped" && last.state !== "failed") last.state = "skipped";
    }
    if (!tag.endsWith("/")) open.push(name);
    await breathe();
  }
  return !hasRoot ? "something else" : open.length > 0 ? "broken" : cases;
}

/** Where the text continues after a comment, data or an instruction that begins here; undefined if a tag does. */
function skip(text: string, start: number): number | "refused" | undefined {
  const marks = [
    ["<!--", "-->"],
    ["<![CDATA[", "]]>"],
    ["<?", "?>"],
  ] as const;
  for (const [from, to] of marks) {
    if (!text.startsWith(from, start)) continue;
    const end = text.indexOf(to, start + from.length);
    return end < 0 ? "refused" : end + to.length;
  }
  return text.startsWith("<!", start) ? "refused" : undefined;
}

/** Where a tag ends: at the first `>` outside its quotes. */
function tagEnd(text: string, start: number): number {
  let quote = "";
  const last = Math.min(text.length, start + LONGEST_TAG);
  for (let at = start + 1; at < last; at++) {
    const sign = text[at]!;
    if (quote !== "") quote = sign === quote ? "" : quote;
    else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === ">") return at;
  }
  return -1;
}

function nameOf(tag: string): string {
  const found = new Map([...tag.matchAll(ATTRIBUTE)].map(([, key, double, single]) => [key, decoded(double ?? single ?? "")]));
  const [owner, name] = [found.get("classname") ?? "", found.get("name") ?? ""];
  return owner === "" || owner === name ? name : `${owner}.${name}`;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(lt|gt|amp|quot|apos));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
