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
  /** The files and folders that it would use, as they are now: for others it asks again. */
  places?: string;
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
  /** How long an answer can still be used; the config's time counts where it is shorter. */
  withinMs?: number;
  /** What can be allowed besides this one call. */
  scopes?: ScopeOffer[];
  /** Ends the wait, not the question: the same is asked again if the turn is taken up, and withdrawn when its owner ends. */
  signal: AbortSignal;
}

/** Of exactly what is asked. The part before the dot is the same for the same call wherever it would be made. */
export function hashOf({ key, tool, args, owner, cwd, treeHash, places }: Asked): string {
  const { kind, id } = ownerOf(owner);
  const what = key === undefined ? ["call", tool, args, kind, id, cwd ?? null, treeHash ?? null] : ["key", key];
  const call = sha256(canonical(what));
  return places === undefined ? call : `${call}.${sha256(places)}`;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** The message, task, run or schedule that a turn belongs to; a step's name begins with its run's. */
export function ownerOf(owner: string): Approval["owner"] {
  if (owner.startsWith("m_")) return { kind: "message", id: owner };
  if (owner.startsWith("t_")) return { kind: "task", id: owner };
  if (owner.startsWith("s_")) return { kind: "schedule", id: owner };
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
