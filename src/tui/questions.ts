import { formatApproval } from "../protocol/approval-text.ts";
import type { Approval } from "../protocol/approvals.ts";
import { coloured, dim, type Line } from "./text/style.ts";
import { type Block, plainBlock, safe } from "./transcript/blocks.ts";

/** How long a question has to be in sight before a bare yes or no is taken for its answer. */
const READ_MS = 400;

/** What waits for the person, the oldest first; one at a time is in sight. */
export class Questions {
  readonly #now: () => number;
  #waiting: { approval: Approval; seenSince?: number }[] = [];
  /** Those that were too long for the live region and were printed whole. */
  readonly #printed = new Set<string>();
  /** Those that were answered here, and that nobody has decided yet. */
  readonly #answered = new Set<string>();

  constructor(now: () => number) {
    this.#now = now;
  }

  ask(approval: Approval): boolean {
    if (this.#waiting.some((each) => each.approval.id === approval.id)) return false;
    this.#waiting.push({ approval });
    return true;
  }

  /** What was decided, as it is printed; the question stands there whole, if it did not before. */
  decided(approval: Approval): Block | undefined {
    const isKnown = this.#waiting.some((each) => each.approval.id === approval.id);
    this.#waiting = this.#waiting.filter((each) => each.approval.id !== approval.id);
    if (!isKnown) return undefined;
    const text = formatApproval(approval, { allow: "/allow", deny: "/deny" });
    return plainBlock(this.#printed.has(approval.id) ? `${approval.id}: ${text.split("\n").at(-1)}` : text);
  }

  /** Those that are no longer among what waits are gone. */
  keepOnly(waiting: readonly Approval[]): void {
    for (const approval of [...waiting].reverse()) this.ask(approval);
    this.#waiting = this.#waiting.filter(({ approval }) => waiting.some(({ id }) => id === approval.id));
  }

  /** The one that a bare yes or no answers, and whether it has been in sight for long enough to be meant. */
  current(): { approval: Approval; isSeen: boolean } | undefined {
    const first = this.#waiting[0];
    if (!first || this.#answered.has(first.approval.id)) return undefined;
    return { approval: first.approval, isSeen: this.#now() - (first.seenSince ?? this.#now()) >= READ_MS };
  }

  /** One key is one answer: another one is not taken for the same question, unless the first did not arrive. */
  answered(id: string, arrived = true): void {
    if (arrived) this.#answered.add(id);
    else this.#answered.delete(id);
  }

  /** The question in sight. One that has not enough room is handed to `print`, whole, and only its answer line stays. */
  lines(room: number, print: (block: Block) => void): Line[] {
    const first = this.#waiting[0];
    if (!first) return [];
    first.seenSince ??= this.#now();
    const { approval } = first;
    const text = safe(formatApproval(approval, { allow: "/allow", deny: "/deny" })).split("\n");
    if (text.length > room && !this.#printed.has(approval.id)) {
      this.#printed.add(approval.id);
      print(plainBlock(text.slice(0, -1).join("\n")));
    }
    const shown = this.#printed.has(approval.id) ? [`${approval.id}: see above`, text.at(-1)!] : text;
    const more = this.#waiting.length - 1;
    const keys = this.current()?.isSeen ? `y allows, n denies; /deny ${approval.id} <why> says why` : "…";
    const hint = `${keys}${more > 0 ? ` · ${more} more: /approvals` : ""}`;
    return [
      ...shown.map((line, index): Line => (index === 0 ? [coloured("? ", "yellow"), { text: line }] : [{ text: `  ${line}` }])),
      [dim(`  ${hint}`)],
    ];
  }
}

/** A bare yes or no, with what stands behind it. */
export function yesOrNo(text: string): { decision: "allow" | "deny"; words: string[] } | undefined {
  const [first = "", ...words] = text.trim().split(/\s+/);
  if (/^(?:y|yes)$/i.test(first) && words.length <= 1) return { decision: "allow", words };
  return /^(?:n|no)$/i.test(first) ? { decision: "deny", words } : undefined;
}
