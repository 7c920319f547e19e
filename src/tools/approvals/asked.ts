import { createHash, randomInt } from "node:crypto";
import type { Approval, ScopeOffer } from "../../protocol/approvals.ts";
import { canonical } from "../audit.ts";

/** What somebody wants to do that a person is to decide on. */
export interface Asked {
  kind: Approval["kind"];
  /** The message, task or step that asks, by the name its turn has. */
  owner: string;
  /** Which try of the owner's turn asks: a later one takes the place of an earlier one that still waits. */
  attempt?: number;
  actor: string;
  tool: string;
  /** What the decision stands for, together with owner and folder: anything else asks again. */
  args: unknown;
  /** In place of all that: whoever asks with the same key waits for the same decision. */
  key?: string;
  summary: string;
  command?: string | undefined;
  path?: string | undefined;
  diff?: string | undefined;
  cwd?: string | undefined;
  treeHash?: string | undefined;
  reason?: string | undefined;
  rule?: string | undefined;
  /** The folder that a rule of the scope `project` is kept for. */
  project?: string | undefined;
  /** What can be allowed besides this one call. */
  scopes?: ScopeOffer[];
  /** Ends the wait, not the question: the same is asked again if the turn is taken up, and withdrawn when its owner ends. */
  signal: AbortSignal;
}

/** Of exactly what is asked. */
export function hashOf({ key, tool, args, owner, cwd, treeHash }: Asked): string {
  const { kind, id } = ownerOf(owner);
  const what = key === undefined ? ["call", tool, args, kind, id, cwd ?? null, treeHash ?? null] : ["key", key];
  return createHash("sha256").update(canonical(what)).digest("hex");
}

/** The message, task or run that a turn belongs to; a step's name begins with its run's. */
export function ownerOf(owner: string): Approval["owner"] {
  if (owner.startsWith("m_")) return { kind: "message", id: owner };
  if (owner.startsWith("t_")) return { kind: "task", id: owner };
  return { kind: "run", id: owner.split("/", 1)[0]! };
}

const LETTERS = "abcdefghjkmnpqrstuvwxyz23456789";

/** Five letters and digits that cannot be mistaken for each other. */
export function shortId(isTaken: (id: string) => boolean): string {
  for (;;) {
    const id = Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
    if (!isTaken(id)) return id;
  }
}
