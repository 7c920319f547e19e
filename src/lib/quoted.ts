/** Characters that end a line, reverse the direction, or are invisible to people but not to a model. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{DI}\u2800]/gu;
/** A name that can only be a name: no spaces, no quotes, no mark that starts a heading, list or fence. */
const PLAIN = /^[\p{L}\p{N}_./@~][\p{L}\p{N}_./@~+:=,%-]*$/u;

/**
 * Makes a foreign name (file, package, branch, model, page …) safe for a prompt or message: on one line, bounded, and in
 * quotes unless it is a plain word. Invisible characters are spelled out.
 */
export function named(text: string, max = 120): string {
  return text.length <= max && PLAIN.test(text) ? text : quoted(text, max);
}

/** The same, always in quotes. */
export function quoted(text: string, max = 120): string {
  return `"${shorten(text, max).replace(/["\\]/g, "\\$&").replace(UNSEEN, spelled)}"`;
}

/** A whole path, in quotes only if some of it could not be seen or would break the line. */
export function visible(path: string): string {
  return path.search(UNSEEN) < 0 ? path : quoted(path, Number.POSITIVE_INFINITY);
}

/** Several names, and how many more there are. */
export function namedList(names: readonly string[], most: number, max = 120): string {
  const shown = names.slice(0, most).map((name) => named(name, max));
  return [...shown, ...(names.length > most ? [`… (${names.length})`] : [])].join(", ");
}

/** Foreign words on one line, for a place where quotes would disturb. */
export function oneLine(text: string, max: number): string {
  const line = text
    .slice(0, max * 4 + 64)
    .replace(UNSEEN, " ")
    .replace(/\s+/g, " ")
    .trim();
  return shorten(line, max);
}

/** A text of several lines, indented so that none can pass for a line of the surrounding text. */
export function indented(text: string, by = "  "): string {
  return `${by}${text.replace(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/g, `\n${by}`)}`;
}

function shorten(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function spelled(letter: string): string {
  if (letter === "\n") return "\\n";
  if (letter === "\t") return "\\t";
  return `\\u{${letter.codePointAt(0)!.toString(16)}}`;
}
