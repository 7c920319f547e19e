export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** Whether a body escapes half of a surrogate pair, which strict parsers reject. */
export function hasLoneSurrogate(text: string): boolean {
  return (
    /\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})/i.test(text) || /(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i.test(text)
  );
}

/** The text of a message's content, which is a string or a list of parts. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map((part) => objectOf(part))
    .map(({ text, content: inner }) => (typeof text === "string" ? text : inner === undefined ? "" : contentText(inner)))
    .join("");
}

/** A value as Python prints it, which is what OpenAI's messages contain. */
export function quoted(value: unknown): string {
  return typeof value === "string" ? `'${value}'` : JSON.stringify(value);
}

/** A list in English: 'a', 'b', and 'c'. */
export function listed(values: readonly string[]): string {
  const all = values.map(quoted);
  if (all.length < 2) return all.join("");
  return all.length === 2 ? all.join(" and ") : `${all.slice(0, -1).join(", ")}, and ${all.at(-1)}`;
}
