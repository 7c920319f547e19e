import { nameGlob, type PathGlob, pathGlob } from "./path-glob.ts";

interface Rule {
  isNegated: boolean;
  foldersOnly: boolean;
  /** A pattern without a slash matches a name in any folder below; others match a path relative to their own folder. */
  fits: { name: (name: string) => boolean } | { path: PathGlob };
}

/** The rules in the ignore files of a folder and of the folders above it. */
export interface IgnoreRules {
  rules: readonly Rule[];
  /** The number of parts in the path of their folder. */
  depth: number;
  above: IgnoreRules | undefined;
}

/** Adds the rules of a folder's ignore file to those of the folders above it. */
export function withRules(above: IgnoreRules | undefined, depth: number, text: string): IgnoreRules {
  const rules = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap((line) => ruleOf(line.endsWith("\r") ? line.slice(0, -1) : line));
  return { rules, depth, above };
}

/** Whether an entry is ignored, given by the parts of its path. The last match in the nearest file decides. */
export function isIgnored(rules: IgnoreRules | undefined, parts: readonly string[], isFolder: boolean): boolean {
  const name = parts[parts.length - 1]!;
  for (let at = rules; at !== undefined; at = at.above) {
    const { depth } = at;
    let below: readonly string[] | undefined;
    const rule = at.rules.findLast(({ foldersOnly, fits }) => {
      if (foldersOnly && !isFolder) return false;
      if ("name" in fits) return fits.name(name);
      below ??= depth === 0 ? parts : parts.slice(depth);
      return fits.path(below);
    });
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
  const anchored = pattern.startsWith("/") ? pattern.slice(1) : pattern;
  // "a/**" matches everything in a, but not a itself.
  const path = () => pathGlob(anchored.endsWith("/**") ? `${anchored}/*` : anchored);
  return [{ isNegated, foldersOnly, fits: pattern.includes("/") ? { path: path() } : { name: nameGlob(pattern) } }];
}

/** Trailing spaces count only after a backslash. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === " " && line[end - 2] !== "\\") end -= 1;
  return line.slice(0, end);
}
