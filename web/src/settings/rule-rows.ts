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
export type Limits = Partial<Record<string, Partial<Record<string, number>>>>;

/** The limits that a text holds; undefined if it holds something else. */
export function readLimits(text: string): Limits | undefined {
  if (text.trim() === "") return {};
  try {
    const read: unknown = JSON.parse(text);
    const isLimits = typeof read === "object" && read !== null && !Array.isArray(read);
    return isLimits && Object.values(read).every((each) => typeof each === "object" && each !== null)
      ? (read as Limits)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The limits with one of them changed; an empty field takes it out. What is no number is kept for the daemon to refuse. */
export function withLimit(limits: Limits, kind: string, amount: string, typed: string): Limits {
  const { [amount]: _before, ...rest } = limits[kind] ?? {};
  const words = typed.trim();
  const value = Number.isNaN(Number(words)) ? (words as unknown as number) : Number(words);
  const limit = words === "" ? rest : { ...rest, [amount]: value };
  const { [kind]: _old, ...others } = limits;
  return Object.keys(limit).length === 0 ? others : { ...others, [kind]: limit };
}
