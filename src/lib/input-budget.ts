/** Limits on the structure of one input. Its size in bytes is limited by the reader. */
export interface InputBudget {
  depth: number;
  /** Object keys and list entries, over all levels. */
  entries: number;
}

/** The budget of a JSON document from a client or a model. */
export const INPUT_BUDGET: InputBudget = { depth: 64, entries: 10_000 };

const QUOTE = 34;
const COMMA = 44;
const OPEN_LIST = 91;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/**
 * Why a JSON text is refused before parsing: nested too deeply, too many entries, or escaped characters that no text may
 * contain (NUL). Undefined for a text within the budget, which may still be invalid JSON.
 */
export function jsonTrouble(text: string, { depth: deepest, entries: most }: InputBudget = INPUT_BUDGET): string | undefined {
  let depth = 0;
  let entries = 0;
  const endOfString = stringReader(text);
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = endOfString(at + 1);
      if (typeof end === "string") return end;
      at = end;
    } else if (code === COMMA) {
      entries += 1;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      entries += 1;
      if (depth > deepest) return tooDeep(deepest);
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      depth -= 1;
    }
    if (entries > most) return tooMany(most);
  }
  return undefined;
}

/** The same check for a value that is already parsed. */
export function valueTrouble(value: unknown, { depth: deepest, entries: most }: InputBudget = INPUT_BUDGET): string | undefined {
  let entries = 0;
  let level: object[] = isObject(value) ? [value] : [];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > deepest) return tooDeep(deepest);
    const next: object[] = [];
    for (const parent of level) {
      // for…in can stop early; Object.values would first build the whole list.
      for (const key in parent) {
        entries += 1;
        if (entries > most) return tooMany(most);
        const child: unknown = (parent as Record<string, unknown>)[key];
        if (isObject(child)) next.push(child);
      }
    }
    level = next;
  }
  return undefined;
}

const tooDeep = (most: number) => `is nested more than ${most} levels deep`;
const tooMany = (most: number) => `has more than ${most.toLocaleString("en")} entries`;
const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** Finds the end of the string that starts at an index, or its error. Each call continues after the one before. */
function stringReader(text: string): (start: number) => number | string {
  // Cached while they lie ahead: searching again for each string could read the whole text every time.
  let backslash = -1;
  let quote = -1;
  return (start) => {
    let at = start;
    for (;;) {
      if (backslash < at) backslash = indexOrEnd(text, "\\", at);
      if (quote < at) quote = indexOrEnd(text, '"', at);
      if (quote <= backslash) return quote;
      if (text[backslash + 1] !== "u") {
        at = backslash + 2;
        continue;
      }
      const unit = unitAt(text, backslash);
      if (unit === 0) return "holds a NUL character";
      at = backslash + 6;
    }
  };
}

const unitAt = (text: string, start: number) => Number.parseInt(text.slice(start + 2, start + 6), 16);

function indexOrEnd(text: string, letter: string, from: number): number {
  const at = text.indexOf(letter, from);
  return at < 0 ? text.length : at;
}
