import { posix } from "node:path";

/** Whether a path, given by its parts, matches. */
export type PathGlob = (parts: readonly string[]) => boolean;

type Token = { kind: "star" } | { kind: "any" } | { kind: "one"; fits: (letter: string) => boolean };
type Part = "**" | ((name: string) => boolean);

const STAR: Token = { kind: "star" };
/** The most alternatives that the braces of a pattern may expand to. */
const MOST_ALTERNATIVES = 100;

/**
 * A pattern for paths: `*` and `?` match within a name, `**` spans folders, `[a-z]` is a set of letters. For any pattern, the
 * time to match grows at most with the product of the two lengths: after a mismatch, only the last star is retried.
 */
export function pathGlob(pattern: string): PathGlob {
  const parts = pattern.split("/").map(partOf);
  // Two `**` in a row mean the same as one, and would be retried for nothing.
  const lean = parts.filter((part, at) => part !== "**" || parts[at - 1] !== "**");
  const [only] = lean;
  if (lean.length === 1 && typeof only === "function") return (names) => names.length === 1 && only(names[0]!);
  return (names) =>
    fitsWithStars(
      names.length,
      lean.length,
      (at) => lean[at] === "**",
      (name, at) => {
        const part = lean[at]!;
        return part !== "**" && part(names[name]!);
      },
    );
}

/** A pattern for a single name. */
export function nameGlob(pattern: string): (name: string) => boolean {
  const part = partOf(pattern);
  return part === "**" ? () => true : part;
}

/**
 * A pattern as a model writes it: without a slash it matches a name in any folder, braces hold alternatives, and one that
 * begins with the whole path of the searched folder is relative to that folder.
 */
export function requestedGlob(pattern: string, root = ""): PathGlob {
  const below = pattern.startsWith(`${root}/`) ? pattern.slice(root.length) : pattern;
  const globs = alternatives(below.replace(/^\.?\//, "")).map((each): PathGlob => {
    const plain = each.replace(/\/$/, "");
    if (each.includes("/")) return pathGlob(plain);
    const fits = nameGlob(plain);
    return (parts) => fits(parts[parts.length - 1]!);
  });
  const [only, ...others] = globs;
  return only && others.length === 0 ? only : (parts) => globs.some((fits) => fits(parts));
}

/** Whether a pattern tries to leave the folder that it is relative to, where nothing can match it. */
export function leavesFolder(pattern: string): boolean {
  return alternatives(pattern).some((each) => each.split("/").includes(".."));
}

/** A pattern that leaves its folder, as a folder to look in and a pattern for what is below. */
export function elsewhere(pattern: string, path: string): { path: string; glob: string } {
  const parts = pattern.split("/");
  const first = parts.findIndex((part) => /[*?[{]/.test(part));
  const folders = parts.slice(0, first < 0 ? -1 : first).join("/");
  const isWhole = pattern.startsWith("/") || pattern.startsWith("~/");
  return { path: isWhole ? folders || "/" : posix.join(path, folders), glob: parts.slice(first < 0 ? -1 : first).join("/") };
}

function alternatives(pattern: string): string[] {
  let whole = [pattern];
  for (let isOpen = true; isOpen && whole.length < MOST_ALTERNATIVES; ) {
    isOpen = false;
    whole = whole.flatMap((each) => {
      // The first closing brace belongs to the last opening brace before it.
      const close = each.indexOf("}");
      const open = each.lastIndexOf("{", close);
      if (close < 0 || open < 0) return [each];
      isOpen = true;
      const choices = each.slice(open + 1, close).split(",");
      return choices.map((choice) => each.slice(0, open) + choice + each.slice(close + 1));
    });
  }
  return whole.slice(0, MOST_ALTERNATIVES);
}

function partOf(text: string): Part {
  if (text === "**") return "**";
  if (!/[*?[\\]/.test(text)) return (name) => name === text;
  const suffix = /^\*([^*?[\\]+)$/.exec(text)?.[1];
  if (suffix !== undefined) return (name) => name.endsWith(suffix);
  const tokens = tokensOf(text);
  return (name) =>
    fitsWithStars(
      name.length,
      tokens.length,
      (at) => tokens[at]!.kind === "star",
      (letter, at) => {
        const token = tokens[at]!;
        return token.kind === "any" || (token.kind === "one" && token.fits(name[letter]!));
      },
    );
}

/** Matches a sequence against a pattern in which a star stands for any number of elements. */
function fitsWithStars(
  length: number,
  patternLength: number,
  isStar: (at: number) => boolean,
  fits: (element: number, at: number) => boolean,
): boolean {
  let [element, at, star, resume] = [0, 0, -1, 0];
  while (element < length) {
    if (at < patternLength && isStar(at)) {
      star = at;
      resume = element;
      at += 1;
    } else if (at < patternLength && fits(element, at)) {
      element += 1;
      at += 1;
    } else if (star >= 0) {
      resume += 1;
      element = resume;
      at = star + 1;
    } else return false;
  }
  while (at < patternLength && isStar(at)) at += 1;
  return at === patternLength;
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; ) {
    const letter = text[at]!;
    if (letter === "*") {
      if (tokens.at(-1) !== STAR) tokens.push(STAR);
    } else if (letter === "?") tokens.push({ kind: "any" });
    else if (letter === "[") {
      const set = setAt(text, at);
      tokens.push({ kind: "one", fits: set?.fits ?? (() => false) });
      // As in git, a set that is never closed matches nothing.
      at = set?.end ?? text.length;
      continue;
    } else {
      if (letter === "\\") at += 1;
      const literal = text[at] ?? "";
      tokens.push({ kind: "one", fits: (each) => each === literal });
    }
    at += 1;
  }
  return tokens;
}

const CLASSES: Readonly<Record<string, RegExp>> = {
  alnum: /[A-Za-z0-9]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  digit: /[0-9]/,
  lower: /[a-z]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /\s/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

function setAt(text: string, start: number): { fits: (letter: string) => boolean; end: number } | undefined {
  let at = start + 1;
  const isNegated = text[at] === "!" || text[at] === "^";
  if (isNegated) at += 1;
  const tests: ((letter: string) => boolean)[] = [];
  for (const first = at; at < text.length; ) {
    if (text[at] === "]" && at > first)
      return { fits: (letter) => tests.some((test) => test(letter)) !== isNegated, end: at + 1 };
    const kind = /^\[:([a-z]+):\]/.exec(text.slice(at, at + 12))?.[1];
    if (kind !== undefined) {
      const letters = CLASSES[kind];
      tests.push((letter) => letters?.test(letter) ?? false);
      at += kind.length + 4;
      continue;
    }
    if (text[at] === "\\") at += 1;
    const low = text[at] ?? "";
    at += 1;
    if (text[at] === "-" && at + 1 < text.length && text[at + 1] !== "]") {
      at += text[at + 1] === "\\" ? 2 : 1;
      const high = text[at] ?? "";
      tests.push((letter) => letter >= low && letter <= high);
      at += 1;
    } else tests.push((letter) => letter === low);
  }
  return undefined;
}
