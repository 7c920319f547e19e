import { type Breath, createBreath } from "../lib/breath.ts";
import { withoutEnd } from "../lib/trim.ts";
import { readShell } from "./read.ts";
import type { Line, Word } from "./syntax.ts";

/** One command of a text, and the line where it begins. */
export interface Statement {
  text: string;
  line: number;
}

/** A download, and the command that runs the downloaded file. */
export interface DownloadRun {
  download: Statement;
  run: Statement;
}

/** What a command does with a file or folder. */
interface Act {
  does: "download" | "clone" | "run";
  path: string;
}

/** How many commands after a clone a script still counts as the clone's, even if its path does not contain the clone's name. */
const NEAR = 10;
const PIECE = 8_000;
const NO_FILE = /^(?:\d+|\/dev\/.*)$/;
/** How many levels of nested quotes are read. */
const MAX_QUOTES = 4;

const FETCHERS = new Set(["curl", "wget", "aria2c", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"]);
const INTERPRETER = /^(?:(?:ba|z|da|k|fi)?sh|python[\d.]*|perl|ruby|node|php|deno|bun|powershell|pwsh|source|\.)$/;
const OTHERS = new Set(["git", "chmod", "cat"]);

/** Words that may precede a program: a prompt, a list marker, a keyword, or a program that runs another. */
const LEAD = /^(?:[-*>$#%+!]|\d+[.)]|sudo|nohup|time|env|if|then|else|do|while|until|\w+=.*)$/;
const RUN_WORD = /^(?:run|runs|execute|exec|start|launch)$/i;

const FETCHES =
  /\b(?:urlopen|urlretrieve|requests\.(?:get|post|request)|httpx\.(?:get|post)|axios(?:\.(?:get|post))?|fetch|https?\.get)\s*\(/;
const EVALUATES =
  /(?:(?<![.\w])(?<!\b(?:function|def) )|\b(?:window|globalThis|builtins)\.)(?:exec|eval|Function)\s*\(\s*(?![\s)'"`])|\.then\(\s*(?:eval|Function)\b|\brunIn(?:This|New)?Context\s*\(\s*(?![\s)'"`])/;

/** Finds the downloads of a text that a later command runs. Each download is reported once. */
export async function findDownloadRuns(
  statements: readonly Statement[],
  breathe: Breath = createBreath(),
): Promise<DownloadRun[]> {
  const found = new Map<Statement, Statement>();
  const files = new Map<string, Statement>();
  const clones = new Map<string, Statement>();
  let newest: { clone: Statement; index: number } | undefined;
  let fetched: Statement | undefined;

  for (const [index, command] of statements.entries()) {
    for (const { does, path } of await actsAlong(command.text, breathe)) {
      if (does === "download") files.set(nameOf(path), command);
      else if (does === "clone") {
        clones.set(nameOf(path), command);
        newest = { clone: command, index };
      } else {
        const near = newest && index - newest.index <= NEAR && isOwnScript(path) ? newest.clone : undefined;
        const download = files.get(nameOf(path)) ?? cloneOf(path, clones) ?? near;
        if (download && !found.has(download)) found.set(download, command);
      }
    }
    const begun = fetched ? undefined : FETCHES.exec(command.text);
    if (begun) fetched = command;
    if (fetched && EVALUATES.test(begun ? command.text.slice(begun.index + begun[0].length) : command.text)) {
      if (!found.has(fetched)) found.set(fetched, command);
      fetched = undefined;
    }
  }
  return [...found].map(([download, run]) => ({ download, run }));
}

/** Reads a very long line in overlapping pieces, so that it does not block the event loop. */
async function actsAlong(text: string, breathe: Breath): Promise<Act[]> {
  const acts: Act[] = [];
  for (let at = 0; at === 0 || at < text.length - PIECE / 2; at += PIECE / 2) {
    acts.push(...actsOf(text.slice(at, at + PIECE)));
    await breathe();
  }
  return acts;
}

function cloneOf(path: string, clones: ReadonlyMap<string, Statement>): Statement | undefined {
  const folder = path
    .split(/[\\/]/)
    .slice(0, -1)
    .find((part) => clones.has(part));
  return folder === undefined ? undefined : clones.get(folder);
}

function isOwnScript(path: string): boolean {
  return !/^[/~$]/.test(path) && /[\\/]|\.[a-z]{1,4}\.?$/i.test(path);
}

/** The last part of a path, since a command may change the folder before it names the file again. */
function nameOf(path: string): string {
  return withoutEnd(path, ".,:\\/").split(/[\\/]/).at(-1)!;
}

function actsOf(command: string): Act[] {
  const acts: Act[] = [];
  let shown: string | undefined;
  for (const words of segmentsOf(command)) {
    const starts = words.flatMap((word, index) => (isProgram(programOf(word)) ? [index] : []));
    for (const [nth, start] of starts.entries()) {
      const program = programOf(words[start]!);
      const args = words.slice(start + 1, starts[nth + 1]);
      if (program === "cat") shown = args.find(isOperand);
      else if (FETCHERS.has(program)) acts.push(...filesFetched(program, args).map((path): Act => ({ does: "download", path })));
      else if (program === "git") acts.push(...foldersCloned(args).map((path): Act => ({ does: "clone", path })));
      else acts.push(...filesRun(program, args, shown).map((path): Act => ({ does: "run", path })));
    }
    const direct = directRun(words);
    if (direct !== undefined) acts.push({ does: "run", path: direct });
  }
  return acts;
}

/**
 * Splits a command, or a sentence or program that contains one, into the words of each single command. Words in quotes or
 * brackets count like those around them, since in prose and in code these marks are not the shell's.
 */
function segmentsOf(text: string): string[][] {
  const segments: string[][] = [[]];
  let word = "";
  const endWord = () => {
    if (word !== "") segments.at(-1)!.push(word);
    word = "";
  };
  const endSegment = () => {
    endWord();
    segments.push([]);
  };
  const addLine = (line: Line, depth: number) => {
    for (const [index, command] of line.flatMap(({ pipe }) => pipe).entries()) {
      if (index > 0) endSegment();
      if (command.group) addLine(command.group, depth);
      let nextArrow = 0;
      for (const [at, each] of [...command.words, undefined].entries()) {
        for (; command.redirects[nextArrow] && command.redirects[nextArrow]!.at <= at; nextArrow += 1) {
          const { operator, target } = command.redirects[nextArrow]!;
          if (NO_FILE.test(target.text)) continue;
          word = operator.startsWith("<") ? "<" : ">";
          endWord();
          addWord(target, depth);
        }
        if (each) addWord(each, depth);
      }
      if (command.defines) addLine(command.defines, depth);
    }
  };
  const addWord = ({ pieces }: Word, depth: number) => {
    for (const piece of pieces) {
      if (piece.kind === "commands") {
        endWord();
        addLine(piece.line, depth);
        endWord();
      } else if (piece.kind === "text" && piece.isQuoted && /[\s;&|()<>`]/.test(piece.text) && depth < MAX_QUOTES) {
        if (/^[\s)]*[;&|]/.test(piece.text)) endSegment();
        else if (/^[\s()<>]/.test(piece.text)) endWord();
        addLine(readShell(bared(piece.text)), depth + 1);
        if (/[;&|]\s*$/.test(piece.text)) endSegment();
        else if (/[\s()<>]$/.test(piece.text)) endWord();
      } else word += piece.text.replace(/["'{}`()]/g, "");
    }
    endWord();
  };
  addLine(readShell(bared(text)), 0);
  endWord();
  return segments;
}

/** Removes what means something else to a shell than to the author: comment signs, and signs in paths and addresses. */
function bared(text: string): string {
  return text
    .replace(/(^|\s)#+/g, "$1 ")
    .replace(/\\(?=[\w.])/g, "/")
    .replace(/(?<=[\w%])&(?=\w)/g, "+");
}

function programOf(word: string): string {
  return word === "." ? word : word.slice(word.lastIndexOf("/") + 1).toLowerCase();
}

function isProgram(name: string): boolean {
  return FETCHERS.has(name) || OTHERS.has(name) || INTERPRETER.test(name);
}

function isOperand(word: string): boolean {
  return !/^[-<>]/.test(word);
}

function isAddress(word: string): boolean {
  return /^(?:https?|ftp|ssh|git):\/\/|^git@|^[\w-]+(?:\.[\w-]+)+\//i.test(word);
}

/** The files that a command downloads to: those named by options, else the last part of the address. */
function filesFetched(program: string, args: readonly string[]): string[] {
  const letter = program === "wget" ? "O" : "o";
  const next = new RegExp(`^(?:-[a-zA-Z#]*${letter}|--output|--output-document|--out|-[oO]ut[fF]ile|>)$`);
  const joined = new RegExp(`^(?:-${letter}|--(?:output|output-document|out)=)(?=[^=])(.+)$`);
  const named = args.flatMap((arg, index) => (next.test(arg) ? args.slice(index + 1, index + 2) : (joined.exec(arg)?.[1] ?? [])));
  const byAddress =
    program === "curl"
      ? args.some((arg) => /^-[a-zA-Z#]*O|^--remote-name/.test(arg))
      : ["wget", "aria2c"].includes(program) && named.length === 0;
  const addressed = byAddress ? args.filter(isAddress).map(fileOfAddress) : [];
  return [...named, ...addressed].filter((path) => path !== "-" && !path.startsWith("/dev/"));
}

function fileOfAddress(address: string): string {
  const path = address.replace(/^\w+:\/\//, "").split(/[?#]/, 1)[0]!;
  return path.includes("/") && !path.endsWith("/") ? path.slice(path.lastIndexOf("/") + 1) : "index.html";
}

function foldersCloned(args: readonly string[]): string[] {
  const at = args.indexOf("clone");
  const address = at < 0 ? -1 : args.findIndex((arg, index) => index > at && isAddress(arg));
  if (address < 0) return [];
  const named = args.slice(address + 1).find(isOperand);
  const own = withoutEnd(args[address]!, ".,:/").replace(/\.git$/, "");
  return named === undefined ? [own] : [own, named];
}

/** The files that a program runs or makes executable. `shown` is the file that `cat` pipes to a shell that names no file. */
function filesRun(program: string, args: readonly string[], shown: string | undefined): string[] {
  const operands = args.filter(isOperand);
  if (program === "chmod") return /^[ugoa]*[+=]\w*x|^[0-7]*[1357]/.test(operands[0] ?? "") ? operands.slice(1) : [];
  const file = operands.find((word) => word !== "run") ?? shown;
  return file === undefined ? [] : [file];
}

/** A path in the position of a program, or after a word such as "run". */
function directRun(words: readonly string[]): string | undefined {
  const first = words.findIndex((word) => !LEAD.test(word));
  const at = words.findIndex((word, index) => /[\\/]/.test(word) && RUN_WORD.test(words[index - 1] ?? ""));
  const path = words[at < 0 ? first : at];
  return path !== undefined && /^(?:[\w$~.-]*[\\/])+[\w$.-]+[,:]?$/.test(path) && !isAddress(path.replace(/^\.+/, ""))
    ? path
    : undefined;
}
