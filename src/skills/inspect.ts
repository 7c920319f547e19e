import { closeSync, readSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { type Breath, createBreath } from "../lib/breath.ts";
import { inFolderOf, openPlain } from "../lib/pinned/read.ts";
import type { SkillWarning } from "../protocol/skills.ts";
import { type DownloadRun, findDownloadRuns, type Statement } from "../shell/download-and-run.ts";
import { safeLine } from "./manifest.ts";

const MAX_CHECKED = 500_000;
const MAX_WARNINGS = 100;
const WINDOW = 1_000;
const MAX_CHECKED_IN_ALL = 5_000_000;

/** Pictures, fonts and films, and the bytes each begins with. A file with such a beginning is no program, whatever its size. */
const MEDIA: Readonly<Record<string, RegExp>> = {
  ".png": /^89504e47/,
  ".jpg": /^ffd8ff/,
  ".jpeg": /^ffd8ff/,
  ".gif": /^47494638/,
  ".webp": /^52494646/,
  ".ico": /^00000100/,
  ".pdf": /^25504446/,
  ".woff": /^774f4646/,
  ".woff2": /^774f4632/,
  ".ttf": /^(?:00010000|74727565)/,
  ".otf": /^4f54544f/,
  ".mp4": /^.{8}66747970/,
};

const SHELL = String.raw`(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+)?(?:(?:\/[\w.-]{1,40}){0,6}\/)?(?:ba|z|da|k|fi)?sh\b`;
const INTERPRETER = String.raw`(?:${SHELL}|(?:python[\d.]*|perl|ruby|node|php|deno|bun)\b)`;
const FETCH = String.raw`(?:curl|wget|fetch|aria2c|Invoke-WebRequest|iwr|irm|Invoke-RestMethod)\b`;

/** The first pattern, then the other later on the line: text that is downloaded or encoded, and what runs it. */
const DOWNLOAD_THEN_RUN: readonly [first: RegExp, then: RegExp][] = [
  [new RegExp(FETCH, "i"), new RegExp(String.raw`\|\s*${INTERPRETER}`, "i")],
  [new RegExp(FETCH, "i"), /\|\s*(?:iex|Invoke-Expression)\b/i],
  [new RegExp(FETCH, "i"), new RegExp(String.raw`(?:&&|;)\s*(?:(?:sudo\s+)?chmod\s+\S*[+x7]\S*\s|${INTERPRETER}\s+\S)`, "i")],
  [/\b(?:iex|Invoke-Expression)\b/i, new RegExp(`${FETCH}|DownloadString`, "i")],
  [/\bbase64\s+(?:-d|--decode)\b/i, new RegExp(String.raw`\|\s*${INTERPRETER}`, "i")],
];

/** The same in one expression. */
const DOWNLOAD_AND_RUN = [
  new RegExp(String.raw`(?:\beval|${INTERPRETER}\s+-[ce])\s*["']?\s*(?:\$\(|${"`"})\s*${FETCH}`, "i"),
  new RegExp(String.raw`(?:${INTERPRETER}|source|\.)\s+<\(\s*${FETCH}`, "i"),
  /\b(?:npx|bunx|pnpm\s+dlx|yarn\s+dlx)\s+(?:-\S+\s+)*["']?(?:https?:|git\+|github:|git@)/i,
  /\b(?:pip3?|uv\s+pip|npm|pnpm|yarn|gem|go)\s+(?:install|add|i)\s+(?:-\S+\s+)*["']?(?:https?:\/\/|git\+)/i,
  /\b(?:exec|eval)\s*\(\s*(?:await\s+)?(?:requests\.get|urllib|urlopen|httpx|fetch|base64|atob|Buffer\.from)\b/i,
  /(?:(?<![.\w])(?:exec|eval|Function)|\bos\.system|\bexecSync)\s*\([^;]{0,120}?\b(?:urlopen|requests\.(?:get|post)|httpx\.get|fetch)\s*\(/,
];

/** Places where people keep secrets. */
const CREDENTIALS = [
  /(?:~|\$\{?HOME\}?|%USERPROFILE%|homedir\(\)|expanduser|\/home\/\w+|\/root)[^\s]{0,20}\/?\.(?:ssh|aws|gnupg|azure|kube|docker)\b/i,
  /\.ssh\/|\bid_(?:rsa|dsa|ecdsa|ed25519)\b/,
  /\.aws\/(?:credentials|config)|\.config\/(?:gcloud|gh)\b|\.docker\/config\.json|\.kube\/config/,
  /(?:^|[\s"'`/~])\.(?:netrc|npmrc|pypirc|git-credentials|pgpass)\b/,
  /\.io\/(?:token|config\.json|io\.db)\b/,
  /\bsecurity\s+find-(?:generic|internet)-password\b|\bsecret-tool\s+lookup\b|\bkeychain\b|\blogin\.keychain|\bkeyring\.get_password\b/i,
  /\$\{?[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|CREDENTIALS?)\b\}?/,
  /\b(?:process\.env|os\.environ|os\.getenv|ENV|getenv|Deno\.env)\b[^\n]{0,20}?\w*(?:TOKEN|SECRET|PASSWORD|API_?KEY|PRIVATE_KEY)/i,
  /(?:^|[\s;&|$(])(?:printenv|env)\s*(?:\||>)/,
  /\b(?:cat|less|head|tail|cp|source|curl\s[^\n]{0,400}@)\s*\S*\.env\b/,
];

/** Scans a skill's files for what a person should see before trusting them. */
export async function inspect(folder: string, files: readonly string[]): Promise<SkillWarning[]> {
  const warnings: SkillWarning[] = [];
  let left = MAX_CHECKED_IN_ALL;
  for (const file of files) {
    const found = await inspectFile(folder, file, Math.min(left, MAX_CHECKED));
    left -= found.size;
    warnings.push(...found.warnings);
    await setImmediate();
  }
  if (warnings.length <= MAX_WARNINGS) return warnings;
  const more = `${warnings.length - MAX_WARNINGS} more warnings are not listed`;
  return [...warnings.slice(0, MAX_WARNINGS), { kind: "not-checked", file: ".", line: 0, text: more }];
}

/** Judges a file by its content: a picture may contain a program, and a program may have a picture's name. */
async function inspectFile(folder: string, file: string, most: number): Promise<{ size: number; warnings: SkillWarning[] }> {
  const path = join(folder, file);
  const shown = safeLine(file, 200);
  const unread = (text: string): SkillWarning[] => [{ kind: "not-checked", file: shown, line: 0, text }];
  const opened = inFolderOf(path, (open) => openPlain(open, basename(path)));
  if ("absent" in opened) return { size: 0, warnings: unread("not a regular file") };
  const { handle, stats } = opened;
  const { size } = stats;
  try {
    const head = Buffer.alloc(12);
    const isMedia = MEDIA[extname(path).toLowerCase()]?.test(head.toString("hex", 0, readSync(handle, head, 0, 12, 0))) ?? false;
    if (size > most) return { size, warnings: isMedia ? [] : unread("too large to be checked") };
    const content = Buffer.alloc(size);
    const length = readSync(handle, content, 0, size, 0);
    if (!isMedia && content.subarray(0, 8_000).includes(0)) return { size, warnings: unread("a binary file") };
    const found = await inspectText(content.toString("utf8", 0, length));
    return { size, warnings: found.map((warning) => ({ ...warning, file: shown })) };
  } finally {
    closeSync(handle);
  }
}

/** The warnings of one text, in its order. */
export async function inspectText(text: string): Promise<Omit<SkillWarning, "file">[]> {
  const breathe = createBreath();
  const commands = commandsOf(text);
  const warnings: Omit<SkillWarning, "file">[] = [];
  for (const command of commands) warnings.push(...(await judge(command, breathe)));
  const told = new Set(warnings.flatMap(({ kind, line }) => (kind === "download-and-run" ? [line] : [])));
  const runs = (await findDownloadRuns(commands, breathe)).filter(({ download }) => !told.has(download.line));
  return [...runs.map(runWarning), ...warnings].sort((a, b) => a.line - b.line);
}

function runWarning({ download, run }: DownloadRun): Omit<SkillWarning, "file"> {
  const brief = ({ text }: Statement, length: number) => safeLine(text.slice(0, 1_000), length);
  const text = download === run ? brief(run, 160) : `${brief(download, 80)} … ${brief(run, 77)}`;
  return { kind: "download-and-run", line: download.line, text };
}

/** The lines of a text. A command continued over several lines counts as one. */
function commandsOf(text: string): Statement[] {
  const commands: Statement[] = [];
  let begun = "";
  let first = 0;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (begun === "") first = index + 1;
    const whole = begun + line;
    begun = whole.length < WINDOW && goesOn(line) ? `${whole.replace(/\\\s*$/, "")} ` : "";
    if (begun === "") commands.push({ text: whole, line: first });
  }
  return begun === "" ? commands : [...commands, { text: begun, line: first }];
}

function goesOn(line: string): boolean {
  return /\\\s*$|&&\s*$/.test(line) || (/\|\s*$/.test(line) && !/^\s*\|/.test(line));
}

/** Long lines are read through a sliding window, so that no length hides a command or slows the search. */
async function judge({ text: command, line }: Statement, breathe: Breath): Promise<Omit<SkillWarning, "file">[]> {
  const holds = async (test: (part: string) => boolean) => {
    for (let at = 0; at === 0 || at < command.length; at += WINDOW / 2) {
      if (test(command.slice(at, at + WINDOW))) return true;
      await breathe();
    }
    return false;
  };
  const text = safeLine(command.slice(0, 1_000), 160);
  const found: Omit<SkillWarning, "file">[] = [];
  if (await holds(downloadsAndRuns)) found.push({ kind: "download-and-run", line, text });
  if (await holds((part) => CREDENTIALS.some((pattern) => pattern.test(part)))) found.push({ kind: "credentials", line, text });
  return found;
}

function downloadsAndRuns(part: string): boolean {
  if (DOWNLOAD_AND_RUN.some((pattern) => pattern.test(part))) return true;
  return DOWNLOAD_THEN_RUN.some(([first, then]) => {
    const begun = first.exec(part);
    return begun !== null && then.test(part.slice(begun.index + begun[0].length));
  });
}
