import { opendirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { privatePlacesAndTargets } from "../home/private-places.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import type { PlainCommand } from "./plain-line.ts";

const wordSet = (text: string) => new Set(text.trim().split(/\s+/));

/** Programs that only read and print, whatever their arguments. Not git: a repository's settings can make it start others. */
const READERS = wordSet(`
  echo printf pwd true false ls cat head tail cut tr nl tac rev fold paste comm join basename dirname realpath readlink
  stat which whoami id groups uname uptime arch nproc cal sleep seq df free cmp
  md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum
`);
/** Arguments that make grep follow links below a folder, or take its patterns from a file. */
const GREP = /^-[^-]*[RSOf]|^--(?:de|f(?:i|il|ile)?(?:$|=))/;
/** Programs that only read the files they name, except with these arguments, which write or read files named elsewhere. */
const READERS_BUT_FOR: Readonly<Record<string, RegExp>> = {
  diff: /^-[^-]*[lr]|^--(?:pag|r)/,
  sort: /^-[^-]*[oT]|^--(?:co|f|o|te)/,
  // `-R` writes a page into every folder.
  tree: /^-[^-]*[oR]|^--o/,
  date: /^-[^-]*[fs]|^--[fs]/,
  rg: /^-[^-]*[fzL]|^--(?:pre|host|search-z|fol|file(?:$|=))/,
  git: /^(?!--version$)/,
  grep: GREP,
  egrep: GREP,
  fgrep: GREP,
  wc: /^--f/,
  du: /^--f/,
  // jq can print its environment and read other files from within its language.
  jq: /\b(?:env|import|include|modulemeta|input_filename)\b|^-[^-]*[fL]|^--(?:from|lib)/i,
  // Other arguments may print the environment of every process.
  ps: /^(?!(?:-?aux|ax|-ef?|-A|-Af|-f|-p|\d+)$)/,
  pgrep: /^--e/,
};
/** Programs that read the current folder if no other is named. */
const READS_FOLDER = wordSet("grep egrep fgrep rg");
const MOST_WORDS = 500;
/** How many names are read and how many of them examined to expand the globs of a line. */
const MOST_READ = 10_000;
const MOST_NAMES = 500;

export interface Whereabouts {
  /** The folder in which the command runs. */
  cwd: string;
  /** The user's home, for `~`. */
  home: string;
}

/**
 * Whether a command line certainly does nothing but read, and reads no keys or passwords: none of the user's, of IO's (in
 * `ioHome`, except in a `border` inside it) or of running processes. False for a line that is not plain, and for a path in the
 * working folder whose links lead out of it and out of `border`.
 */
export function readsAlone(
  commands: readonly PlainCommand[] | undefined,
  where: Whereabouts & { border: string; ioHome: string },
): boolean {
  if (commands === undefined || commands.length === 0) return false;
  if (commands.reduce((sum, { words }) => sum + words.length, 0) > MOST_WORDS) return false;
  const { cwd, border } = where;
  const ioHome = realOf(where.ioHome);
  const secrets = [...privatePlacesAndTargets(where.home), "/proc"];
  const isOwn = (real: string) => border !== ioHome && isWithin(ioHome, border) && isWithin(border, real);
  const touches = (place: string, secret: string) => isWithin(secret, place) || isWithin(place, secret);
  const isOpen = (place: string) => {
    const real = realOf(place);
    if (isWithin(cwd, place) && !isWithin(cwd, real) && !isWithin(border, real)) return false;
    if ([place, real].some((each) => secrets.some((secret) => touches(each, secret)))) return false;
    return isOwn(real) || ![place, real].some((each) => touches(each, ioHome));
  };
  const budget = { read: MOST_READ, names: MOST_NAMES };
  return commands.every(({ words, globs }) => {
    if (!isReader(words)) return false;
    const [program = "", ...args] = words;
    const places = args.flatMap((word) => (globs.includes(word) ? namesFor(word, where, budget) : spellingsOf(word, where)));
    if (places.includes(undefined)) return false;
    const named = places.filter((place) => place !== undefined);
    // To compare two folders it follows the links in them.
    if (program === "diff" && named.some(isFolder)) return false;
    return (READS_FOLDER.has(program) ? [cwd, ...named] : named).every(isOpen);
  });
}

/** The paths that a word may name, by itself or as the value of an option. */
function spellingsOf(word: string, { cwd, home }: Whereabouts): string[] {
  const values = word.startsWith("-") ? [word.slice(word.indexOf("=") + 1), word.slice(word.indexOf("/")), word.slice(2)] : [];
  return [word, ...values].flatMap((each) => [resolve(cwd, each), ...(/^~(?:\/|$)/.test(each) ? [home + each.slice(1)] : [])]);
}

/** The files that a glob may match; undefined if that is not known. */
function namesFor(word: string, { cwd, home }: Whereabouts, budget: { read: number; names: number }): (string | undefined)[] {
  if (budget.read < 0) return [undefined];
  const [literal = ""] = word.split(/[*?[]/, 1);
  if (word.slice(literal.length).includes("/")) return [undefined];
  const start = literal.replace(/^~(?=\/)/, home);
  const folder = resolve(cwd, start.endsWith("/") ? start : dirname(start));
  const begin = literal.slice(literal.lastIndexOf("/") + 1);
  try {
    const found: string[] = [];
    const listing = opendirSync(folder, { bufferSize: 256 });
    try {
      for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
        budget.read -= 1;
        if (entry.name.startsWith(begin)) found.push(resolve(folder, entry.name));
        if (budget.read < 0 || found.length > budget.names) return [undefined];
      }
    } finally {
      listing.closeSync();
    }
    budget.names -= found.length;
    return found;
  } catch {
    // If the folder cannot be listed, the shell leaves the glob as it is.
    return [resolve(folder, begin)];
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing or inaccessible.
    return false;
  }
}

function isReader([program = "", ...args]: readonly string[]): boolean {
  if (READERS.has(program)) return true;
  const not = Object.hasOwn(READERS_BUT_FOR, program) ? READERS_BUT_FOR[program] : undefined;
  return not !== undefined && args.length > 0 ? !args.some((arg) => not.test(arg)) : not !== undefined && program !== "git";
}

interface NamedIn {
  plain: readonly PlainCommand[] | undefined;
  spellings: readonly (readonly string[])[];
  targets: readonly string[];
}

/** The paths named in a command line, by any of the commands found in it and by its redirects. */
export function namedPlaces({ plain, spellings, targets }: NamedIn, where: Whereabouts): string[] {
  const commands = plain?.map(({ words }) => words) ?? spellings.map(([text = ""]) => text.split(/\s+/));
  return [...new Set(placesIn([...targets, ...commands.flatMap((words) => words.slice(1))], where))];
}

const NO_FILES = wordSet("/dev/null /dev/stdin /dev/stdout /dev/stderr /dev/tty");
const HOME = /^(?:~|\$HOME|\$\{HOME\})(?=\/|$)/;

/** Words that look like paths, up to the first glob character. */
function placesIn(words: readonly string[], { cwd, home }: Whereabouts): string[] {
  return words.flatMap((word) => {
    const value = (word.startsWith("-") ? (word.split("=", 2)[1] ?? "") : word).replace(HOME, home);
    if (!/^(?:\/|\.\.(?:\/|$))|\/\.\.(?:\/|$)/.test(value)) return [];
    const [literal = ""] = value.split(/[*?[]/, 1);
    return NO_FILES.has(literal) ? [] : [resolve(cwd, literal)];
  });
}
