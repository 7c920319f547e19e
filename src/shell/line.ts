/** A line for a shell, as far as one has to understand it to tell what it ran and whose exit code it ended with. */
export type Line = Part[];

export interface Part {
  /** What stands between it and the part before. */
  before: "&&" | "||" | ";";
  /** Whether a `!` turns its exit code round. */
  isTurned: boolean;
  inBackground: boolean;
  /** The commands of a pipe, or the only one. */
  pipe: Command[];
}

export interface Command {
  /** Without their quotes. */
  words: string[];
  /** What stands in `( … )` or `{ … }`, in place of words. */
  group?: Line;
  /** What `$( … )` and the like among the words run first. */
  within: Line[];
  /** The text it is given by `<<`. */
  input: string;
  /** Whether it puts something into a file by `>`. */
  writes: boolean;
}

const MAX_TEXT = 20_000;
const MAX_DEPTH = 30;
const OPERATOR = /&&|\|\||;+|\n|&/y;
const REDIRECT = /(?:\d*|&)(<<<|<<-?|<>|<&|<|>>|>&|>\||>)/y;
const KEYWORD = /(?:if|then|elif|else|while|until|do)(?=\s)/y;
const NO_FILE = /^(?:\d+|-|\/dev\/(?:null|stdout|stderr|tty))$/;

/** Reads what a model wrote, so it never fails: what it does not understand is a word like any other. */
export function readShell(whole: string, depth = 0): Line {
  const text = whole.slice(0, MAX_TEXT);
  const awaited: { command: Command; end: string; tabs: boolean }[] = [];
  let at = 0;
  let deep = depth;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at += found[0].length;
    return found;
  };
  const gap = () => void take(/(?:[^\S\n]|\\\n)*(?:(?<![^\s;&|()])#[^\n]*)?/y);

  function line(closer: "" | ")" | "}"): Line {
    const parts: Line = [];
    let before: Part["before"] = ";";
    deep += 1;
    // Nothing that people write is nested so deep.
    if (deep > MAX_DEPTH) at = text.length;
    for (gap(); at < text.length; gap()) {
      if (text[at] === closer) break;
      const operator = take(OPERATOR)?.[0];
      if (operator === "\n") takeInputs();
      else if (operator === "&&" || operator === "||") before = operator;
      else if (operator !== undefined) {
        const last = parts.at(-1);
        if (last && operator === "&") last.inBackground = true;
        before = ";";
      } else if (text[at] === ")") at += 1;
      else {
        parts.push({ before, inBackground: false, ...pipeline() });
        before = ";";
      }
    }
    at += 1;
    deep -= 1;
    return parts;
  }

  function pipeline(): Pick<Part, "isTurned" | "pipe"> {
    const pipe: Command[] = [];
    let isTurned = false;
    do {
      for (gap(); take(KEYWORD) || take(/!(?=[\s(])/y); gap()) if (text[at - 1] === "!") isTurned = !isTurned;
      pipe.push(command());
    } while (take(/\|(?!\|)&?\s*/y));
    return { isTurned, pipe };
  }

  function command(): Command {
    const made: Command = { words: [], within: [], input: "", writes: false };
    if (take(/\(/y)) made.group = line(")");
    else if (take(/\{(?=\s)/y)) made.group = line("}");
    for (gap(); at < text.length; gap()) {
      const redirect = take(REDIRECT)?.[1];
      if (redirect !== undefined) direct(made, redirect);
      else if (/[\n;&|)]/.test(text[at]!)) break;
      else if (take(/\(/y)) made.within.push(line(")"));
      else made.words.push(word(made.within));
    }
    return made;
  }

  function direct(made: Command, redirect: string): void {
    gap();
    if (text[at] === "(") return;
    const target = word(made.within);
    if (redirect === "<<<") made.input += target;
    else if (redirect.startsWith("<<")) awaited.push({ command: made, end: target, tabs: redirect === "<<-" });
    else if (redirect.startsWith(">") && !NO_FILE.test(target)) made.writes = true;
  }

  /** What is given by `<<` stands in the lines that follow. */
  function takeInputs(): void {
    for (const { command: made, end, tabs } of awaited.splice(0)) {
      while (at < text.length) {
        const stop = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at);
        const one = text.slice(at, stop);
        at = stop + 1;
        if ((tabs ? one.replace(/^\t+/, "") : one) === end) break;
        made.input += `${one}\n`;
      }
    }
  }

  function word(within: Line[]): string {
    let made = "";
    for (let quote = ""; at < text.length; ) {
      const sign = text[at]!;
      if (quote === "" && /[\s;&|()<>]/.test(sign)) break;
      at += 1;
      if (sign === "\\") {
        made += text[at] === "\n" ? "" : (text[at] ?? "");
        at += 1;
      } else if (sign === '"') quote = quote === "" ? sign : "";
      else if (sign === "'" && quote === "") made += until("'");
      else if (sign === "`") within.push(readShell(until("`"), deep));
      else if (sign === "$" && text[at] === "(") {
        at += 1;
        within.push(line(")"));
        made += "$()";
      } else made += sign;
    }
    return made;
  }

  function until(end: string): string {
    const found = text.indexOf(end, at);
    const inside = text.slice(at, found < 0 ? text.length : found);
    at += inside.length + 1;
    return inside;
  }

  return deep > MAX_DEPTH ? [] : line("");
}
