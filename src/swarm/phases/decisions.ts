/** The choices that a specification lists under a heading "Decisions". */
export function decisionsOf(spec: string): string[] {
  const [, list = ""] = /^(?:#+\s*|\*\*|- \*\*)\s*decisions\b[^\n]*\n([\s\S]*?)(?=^\s*#|^\*\*|$(?![\s\S]))/im.exec(spec) ?? [];
  return list
    .split("\n")
    .flatMap((line) => /^\s*(?:[-*]|\d+[.)])\s+(.*\S)/.exec(line)?.[1] ?? [])
    .slice(0, 20)
    .map((line) => line.slice(0, 500));
}
