/** What to do with calls of a tool whose command, path or address matches. */
export interface ApprovalRule {
  tool: string;
  match: string;
  then: "allow" | "ask" | "deny";
}

/** Parses a text into rules; undefined if it contains anything else. */
export function readRules(text: string): ApprovalRule[] | undefined {
  if (text.trim() === "") return [];
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) && read.every(isRule) ? read : undefined;
  } catch {
    return undefined;
  }
}

function isRule(each: unknown): each is ApprovalRule {
  if (typeof each !== "object" || each === null) return false;
  const { tool, match, then } = each as Record<string, unknown>;
  return typeof tool === "string" && typeof match === "string" && /^(?:allow|ask|deny)$/.test(String(then));
}

export const BUDGETS = { turn: "message or step", task: "task", run: "run", conversation: "conversation", day: "day" } as const;
export const AMOUNTS = ["tokens", "calls", "money"] as const;
export type Limits = Partial<Record<string, Partial<Record<string, number | string>>>>;

/** Parses a text into an object, where an empty text is an empty object; undefined if it contains anything else. */
function readObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const isObject = (each: unknown) => typeof each === "object" && each !== null && !Array.isArray(each);

/** Parses a text into limits or prices: numbers by name and kind; undefined if it contains anything else. */
export function readLimits(text: string): Limits | undefined {
  const read = readObject(text);
  return read && Object.values(read).every(isObject) ? (read as Limits) : undefined;
}

/** Formats an object as its field's text; an empty object counts as not set. */
export const objectText = (of: Record<string, unknown>): string =>
  Object.keys(of).length === 0 ? "" : JSON.stringify(of, null, 2);

/** Parses a typed number. Anything else is kept as text, for the daemon to refuse. */
export const numberIn = (typed: string): number | string | undefined => {
  const words = typed.trim();
  if (words === "") return undefined;
  return Number.isNaN(Number(words)) ? words : Number(words);
};

/** The limits with one of them changed or removed. */
export function withLimit(limits: Limits, kind: string, amount: string, value: number | string | undefined): Limits {
  const { [amount]: _before, ...rest } = limits[kind] ?? {};
  const limit = value === undefined ? rest : { ...rest, [amount]: value };
  const { [kind]: _old, ...others } = limits;
  return Object.keys(limit).length === 0 ? others : { ...others, [kind]: limit };
}
