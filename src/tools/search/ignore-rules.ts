import { type PathGlob, pathGlob } from "./path-glob.ts";

interface Rule {
  isNegated: boolean;
  foldersOnly: boolean;
  fits: PathGlob;
  /** Without a slash it is about a name in any folder below. */
  isName: boolean;
}

/** What the ignore files of a folder and of those above it say. */
export interface IgnoreRules {
  rules: readonly Rule[];
  /** How many parts the path of their folder has. */
  depth: number;
  above: IgnoreRules | undefined;
}

/** The rules that hold in a folder with this ignore file, besides those above it. */
export function withRules(above: IgnoreRules | undefined, depth: number, text: string): IgnoreRules {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap((line) => ruleOf(line.endsWith("\r") ? line.slice(0, -1) : line));
  return { rules, depth, above };
}

/** Whether an entry is ignored, given by the parts of its path; the nearest file decides, and in it the last rule that fits. */
export function isIgnored(rules: IgnoreRules | undefined, parts: readonly string[], isFolder: boolean): boolean {
  for (let at = rules; at !== undefined; at = at.above) {
    const { depth } = at;
    const below = depth === 0 ? parts : parts.slice(depth);
    const name = parts.slice(-1);
    const rule = at.rules.findLast(({ foldersOnly, isName, fits }) => (isFolder || !foldersOnly) && fits(isName ? name : below));
    if (rule) return !rule.isNegated;
  }
  return false;
}

function ruleOf(line: string): Rule[] {
  if (line.startsWith("#")) return [];
  const isNegated = line.startsWith("!");
  const whole = withoutTrailingSpaces(isNegated ? line.slice(1) : line);
  const foldersOnly = whole.endsWith("/");
  const pattern = foldersOnly ? whole.slice(0, -1) : whole;
  if (pattern === "") return [];
  const isName = !pattern.includes("/");
  const anchored = pattern.startsWith("/") ? pattern.slice(1) : pattern;
  // "a/**" is about everything in a, and not about a itself.
  const fits = pathGlob(anchored.endsWith("/**") ? `${anchored}/*` : anchored);
  return [{ isNegated, foldersOnly, isName, fits }];
}

/** Spaces at the end count only after a backslash. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === " " && line[end - 2] !== "\\") end -= 1;
  return line.slice(0, end);
}
