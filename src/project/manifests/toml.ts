/** The text below each header of a TOML or INI file; enough to see names without a full parser. */
export function sectionsOf(text: string): Map<string, string> {
  const sections = new Map<string, string>();
  let current = "";
  for (const line of text.split(/\r?\n/)) {
    const header = /^\[\[?([^[\]]+)\]\]?[ \t]*(?:#.*)?$/.exec(line)?.[1]?.replace(/["'\s]/g, "");
    if (header !== undefined) current = header;
    sections.set(current, `${sections.get(current) ?? ""}${header === undefined ? `${line}\n` : ""}`);
  }
  return sections;
}

/** Each key of a section, with the rest of its line. */
export function entriesOf(section: string | undefined): [key: string, value: string][] {
  return [...(section ?? "").matchAll(/^["']?([\w-]+)["']?(?:\.\w+)?[ \t]*=(.*)$/gm)].map((match) => [
    match[1]!,
    match[2]!.trim(),
  ]);
}

/** The first quoted text after a key. */
export function quotedValue(section: string | undefined, key: string): string {
  const value = entriesOf(section).find(([name]) => name === key)?.[1] ?? "";
  return /^["']([^"']+)/.exec(value)?.[1] ?? "";
}

/** The quoted texts of each array in a section, by its key. */
export function arraysOf(section: string | undefined): Map<string, string[]> {
  const arrays = new Map<string, string[]>();
  let key: string | undefined;
  for (const line of (section ?? "").split("\n")) {
    const opened = key === undefined ? /^["']?([\w.-]+)["']?[ \t]*=[ \t]*\[/.exec(line) : null;
    if (opened) {
      key = opened[1]!;
      arrays.set(key, []);
    }
    if (key === undefined) continue;
    const rest = opened ? line.slice(opened[0].length) : line;
    arrays.get(key)!.push(...quotedIn(rest));
    if (rest.replace(QUOTED, "").split("#")[0]!.includes("]")) key = undefined;
  }
  return arrays;
}

const QUOTED = /"([^"\n]*)"|'([^'\n]*)'/g;
const quotedIn = (text: string) => [...text.matchAll(QUOTED)].map((match) => match[1] ?? match[2] ?? "");

/** The package that a requirement such as `django[async]>=5` names, in lower case; "" for none. */
export const requirementName = (text: string): string => /^\s*([A-Za-z][\w.-]*)/.exec(text)?.[1]?.toLowerCase() ?? "";

/** The packages that the quoted requirements of a text name. */
export const requirementsIn = (text: string): string[] =>
  quotedIn(text)
    .filter((each) => /^[A-Za-z][\w.-]*[ \t]*(?:[[<>=!~;@(].*)?$/.test(each))
    .map(requirementName);
