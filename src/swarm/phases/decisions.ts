const HEADING = /^(?:#+\s*|\*\*|- \*\*)decisions\b/i;
const NEXT = /^(?:\s*#|\*\*)/;
const ENTRY = /^\s*(?:[-*]|\d+[.)])\s+(\S[\s\S]*)$/;

/** The choices that a specification lists under a heading "Decisions". */
export function decisionsOf(spec: string): string[] {
  const lines = spec.split("\n");
  const start = lines.findIndex((line) => HEADING.test(line));
  if (start < 0) return [];
  const end = lines.findIndex((line, index) => index > start && NEXT.test(line));
  return lines
    .slice(start + 1, end < 0 ? undefined : end)
    .flatMap((line) => ENTRY.exec(line)?.[1]?.trimEnd() ?? [])
    .slice(0, 20)
    .map((line) => line.slice(0, 500));
}
