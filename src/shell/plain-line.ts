/** One program with its arguments, exactly as a shell would start it. */
export interface PlainCommand {
  /** The program and its arguments, without quotes. A glob or a leading `~` stays as it is written. */
  words: string[];
  /** The words that the shell replaces by the names of files. */
  globs: string[];
  /** The same words as they are written, separated by single spaces. */
  text: string;
  /** Whether its input is the output of the command before it. */
  isPiped: boolean;
}

const GAP = /[ \t](?:[ \t]|\\\n)*/y;
const LINES = /(?:[ \t]|\\\n|\n)*/y;
const OPERATOR = /&&|\|\||[;|&\n]/y;
/**
 * A redirect that joins two streams or uses /dev/null, up to the end of a word. Not `&>`, which only bash reads as one
 * operator.
 */
const REDIRECT = /(?:[012]?>&[12]|(?:[012]?>|0?<)[ \t]*\/dev\/null)(?=[ \t\n;&|]|$)/y;
const WORD_END = /(?=[ \t\n;&|]|$)/y;
const PROGRAM = /[A-Za-z0-9_./][A-Za-z0-9_.+/-]*/y;

const BARE = /(?:[A-Za-z0-9_%+=:,./!^-]|@(?:\{\w+\})?|(?<=[A-Za-z0-9_%+,./!^@-])~|(?<=[^ \t\n;&|])#)+/y;
const HOME = /~(?=[/ \t\n;&|]|$)/y;
/** Only in a word that begins like a name: otherwise the name of a file could turn the word into an option. */
const GLOB = /[*?[\]]+/y;
const NAME_START = /[A-Za-z0-9_./]/;
const SINGLE = /'([^']*)'/y;
const DOUBLE = /"((?:[^"\\$`]|\\[^\n])*)"/y;
const ESCAPED = /\\([\x20-\x7e])/y;

const COMMAND_END_AHEAD = /(?=[\n;&|]|$)/y;

const wordSet = (text: string) => new Set(text.split(" "));
const RESERVED = wordSet("if then else elif fi do done case esac while until for in select function time coproc");
/** Builtins that run their arguments or change what later commands do. Some evaluate `a[$(x)]` wherever a name is allowed. */
const STATEFUL_BUILTINS = wordSet(
  ". alias bg bind break builtin caller cd chdir command compgen complete compopt continue declare dirs disown enable eval exec export fc fg getopts hash history jobs let local logout mapfile popd pushd read readarray readonly return set shift shopt source suspend test trap typeset ulimit umask unalias unset wait",
);
/** Bash itself misreads a text that ends with a continued line. */
const CONTINUED_AT_END = /\\\n[ \t\n]*$/;
/** Nobody writes more by hand, and reading this much takes only a moment. */
const MAX_LENGTH = 100_000;
const MAX_TOKENS = 10_000;
/** Control characters, unusual spaces and invisible characters, which people and some shells misread. */
const TREACHEROUS = /[^\P{C}\n\t]|[^\S \n\t]|\p{DI}/u;

/** `printf -v` and `%n` set a variable, such as PATH; the name of a file may contain them. */
const mayAssign = (format: string, globs: readonly string[]) =>
  globs.length > 0 || format.startsWith("-") || /%[^A-Za-z%]*[hjlLtz]*n/.test(format);

/**
 * Parses a command line if it is as plain as most are: programs with literal arguments, joined by `;`, `&&`, `||`, `|`, `&` and
 * line ends. Returns undefined for everything else, and for anything that is not certain. If it returns commands, the shell
 * starts exactly these programs and writes no file by itself.
 */
export function readPlainLine(text: string): PlainCommand[] | undefined {
  if (text.length > MAX_LENGTH || TREACHEROUS.test(text) || CONTINUED_AT_END.test(text)) return undefined;
  let at = 0;
  let tokens = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    tokens += 1;
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found;
  };

  const takeWord = (): { value: string; spelled: string; isGlob: boolean } | undefined => {
    const start = at;
    const mayGlob = NAME_START.test(text[at]!);
    let value = take(HOME)?.[0] ?? "";
    let isGlob = false;
    while (tokens < MAX_TOKENS) {
      const bare = take(BARE);
      const glob = !bare && mayGlob ? take(GLOB) : null;
      const plain = bare ?? glob;
      isGlob ||= glob !== null;
      const single = plain ? null : take(SINGLE);
      const double = plain || single ? null : take(DOUBLE);
      const escaped = plain || single || double ? null : take(ESCAPED);
      if (plain) value += plain[0];
      else if (single) value += single[1]!;
      else if (double) value += double[1]!.replace(/\\([\\"$`])/g, "$1");
      else if (escaped) value += escaped[1]!;
      else break;
    }
    return at > start && take(WORD_END) ? { value, spelled: text.slice(start, at), isGlob } : undefined;
  };

  const takeCommand = (isPiped: boolean): PlainCommand | undefined => {
    const program = take(PROGRAM)?.[0];
    if (program === undefined || RESERVED.has(program) || STATEFUL_BUILTINS.has(program) || !take(WORD_END)) return undefined;
    const words = [program];
    const globs: string[] = [];
    const spelled = [program];
    while (tokens < MAX_TOKENS && take(GAP)) {
      if (take(COMMAND_END_AHEAD)) break;
      if (take(REDIRECT)) continue;
      const word = takeWord();
      if (!word) return undefined;
      words.push(word.value);
      if (word.isGlob) globs.push(word.value);
      spelled.push(word.spelled);
    }
    if (program === "printf" && mayAssign(words[1] ?? "", globs)) return undefined;
    return { words, globs, text: spelled.join(" "), isPiped };
  };

  const commands: PlainCommand[] = [];
  let joint = ";";
  take(LINES);
  while (at < text.length) {
    const command = takeCommand(joint === "|");
    if (!command || tokens >= MAX_TOKENS) return undefined;
    commands.push(command);
    joint = take(OPERATOR)?.[0] ?? "";
    if (joint === "") return at === text.length ? commands : undefined;
    take(LINES);
  }
  return joint === ";" || joint === "&" || joint === "\n" ? commands : undefined;
}
