import { formatApproval } from "../protocol/approval-text.ts";
import type { Approval } from "../protocol/approvals.ts";
import { coloured, dim, type Line } from "./text/style.ts";
import { type Block, plainBlock, safe } from "./transcript/blocks.ts";

/** How long a question must be visible before a bare yes or no counts as its answer. */
const READ_MS = 400;

/** The questions waiting for the user, oldest first. One is visible at a time. */
export class Questions {
  readonly #now: () => number;
  #waiting: { approval: Approval; seenSince?: number }[] = [];
  /** Questions that were too long for the live region and were printed in full. */
  readonly #printed = new Set<string>();
  /** Questions that were answered here and whose decision has not arrived yet. */
  readonly #answered = new Set<string>();

  constructor(now: () => number) {
    this.#now = now;
  }

  ask(approval: Approval): boolean {
    if (this.#waiting.some((each) => each.approval.id === approval.id)) return false;
    this.#waiting.push({ approval });
    return true;
  }

  /** The decision as a block to print, with the whole question if that was not printed before. */
  decided(approval: Approval): Block | undefined {
    const isKnown = this.#waiting.some((each) => each.approval.id === approval.id);
    this.#waiting = this.#waiting.filter((each) => each.approval.id !== approval.id);
    if (!isKnown) return undefined;
    const text = formatApproval(approval, { allow: "/allow", deny: "/deny" });
    return plainBlock(this.#printed.has(approval.id) ? `${approval.id}: ${text.split("\n").at(-1)}` : text);
  }

  /** Keeps only the questions that are still waiting. */
  keepOnly(waiting: readonly Approval[]): void {
    for (const approval of [...waiting].reverse()) this.ask(approval);
    this.#waiting = this.#waiting.filter(({ approval }) => waiting.some(({ id }) => id === approval.id));
  }

  /** The question that a bare yes or no answers, and whether it has been visible long enough for that. */
  current(): { approval: Approval; isSeen: boolean } | undefined {
    const first = this.#waiting[0];
    if (!first || this.#answered.has(first.approval.id)) return undefined;
    return { approval: first.approval, isSeen: this.#now() - (first.seenSince ?? this.#now()) >= READ_MS };
  }

  /** Each question accepts one key as its answer, unless that answer did not arrive. */
  answered(id: string, arrived = true): void {
    if (arrived) this.#answered.add(id);
    else this.#answered.delete(id);
  }

  /** The visible question. If it does not fit, `print` gets it in full and only its answer line stays. */
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

/** Parses a bare yes or no and the words after it. */
export function yesOrNo(text: string): { decision: "allow" | "deny"; words: string[] } | undefined {
  const [first = "", ...words] = text.trim().split(/\s+/);
  if (/^(?:y|yes)$/i.test(first) && words.length <= 1) return { decision: "allow", words };
  return /^(?:n|no)$/i.test(first) ? { decision: "deny", words } : undefined;
}
