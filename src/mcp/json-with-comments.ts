/** Removes comments and trailing commas from JSON as editors write it; strings stay unchanged. */
export function withoutComments(text: string): string {
  const parts: string[] = [];
  /** The index of the last comma, if only whitespace and comments followed it. */
  let comma: number | undefined;
  for (let at = 0; at < text.length; ) {
    const two = text.slice(at, at + 2);
    const sign = text[at]!;
    if (two === "//" || two === "/*") {
      at = endOf(text, two === "//" ? "\n" : "*/", at + 2, two === "//" ? 0 : 2);
      continue;
    }
    const end = sign === '"' ? endOfString(text, at + 1) : at + 1;
    if ((sign === "}" || sign === "]") && comma !== undefined) parts[comma] = "";
    if (sign === ",") comma = parts.length;
    else if (!/\s/.test(sign)) comma = undefined;
    parts.push(text.slice(at, end));
    at = end;
  }
  return parts.join("");
}

function endOf(text: string, mark: string, from: number, more: number): number {
  const found = text.indexOf(mark, from);
  return found < 0 ? text.length : found + more;
}

function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
