/** What is to be done about calls of a tool whose command, path or address fits. */
export interface ApprovalRule {
  tool: string;
  match: string;
  then: "allow" | "ask" | "deny";
}

/** The rules that a text holds; undefined if it holds something else. */
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

/** The object that a text holds, also as nothing; undefined if it holds something else. */
export function readObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The list that a text holds; undefined if it holds something else. */
export function readList(text: string): unknown[] | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

const isObject = (each: unknown) => typeof each === "object" && each !== null && !Array.isArray(each);

/** The limits, or the prices, that a text holds: numbers by name and kind; undefined if it holds something else. */
export function readLimits(text: string): Limits | undefined {
  const read = readObject(text);
  return read && Object.values(read).every(isObject) ? (read as Limits) : undefined;
}

/** An object as the text of its field: what holds nothing is not set. */
export const objectText = (of: Record<string, unknown>): string =>
  Object.keys(of).length === 0 ? "" : JSON.stringify(of, null, 2);

/** What was typed as a number. What is none is kept for the daemon to refuse. */
export const numberIn = (typed: string): number | string | undefined => {
  const words = typed.trim();
  if (words === "") return undefined;
  return Number.isNaN(Number(words)) ? words : Number(words);
};

/** The limits with one of them changed, or taken out. */
export function withLimit(limits: Limits, kind: string, amount: string, value: number | string | undefined): Limits {
  const { [amount]: _before, ...rest } = limits[kind] ?? {};
  const limit = value === undefined ? rest : { ...rest, [amount]: value };
  const { [kind]: _old, ...others } = limits;
  return Object.keys(limit).length === 0 ? others : { ...others, [kind]: limit };
}
