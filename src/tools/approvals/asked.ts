import { createHash, randomInt } from "node:crypto";
import type { Approval, ScopeOffer } from "../../protocol/approvals.ts";
import { canonical } from "../audit.ts";

/** Something that a person must decide on. */
export interface Asked {
  kind: Approval["kind"];
  /** The message, task or step that asks, as its turn is named. */
  owner: string;
  /** Which attempt of the owner's turn asks: a later one replaces an earlier one that still waits. */
  attempt?: number;
  actor: string;
  tool: string;
  /** What the decision covers, together with owner and folder; anything else is asked about again. */
  args: unknown;
  /** The files and folders that it would use, as they are now; others are asked about again. */
  places?: string;
  /** Replaces all of that: everybody who asks with the same key waits for the same decision. */
  key?: string;
  summary: string;
  command?: string | undefined;
  path?: string | undefined;
  diff?: string | undefined;
  cwd?: string | undefined;
  treeHash?: string | undefined;
  reason?: string | undefined;
  rule?: string | undefined;
  /** The folder that a rule with the scope `project` is stored for. */
  project?: string | undefined;
  /** How long an answer can still be used, in milliseconds; the config's time applies if it is shorter. */
  withinMs?: number;
  /** What can be allowed beyond this one call. */
  scopes?: ScopeOffer[];
  /** Ends the wait, not the question: the turn asks it again if it is resumed, and it is withdrawn when its owner ends. */
  signal: AbortSignal;
}

/** Identifies exactly what is asked. The part before the dot is the same for the same call, whichever files it would use. */
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

/** Five letters and digits that are not easily confused. */
export function shortId(isTaken: (id: string) => boolean): string {
  for (;;) {
    const id = Array.from({ length: 5 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
    if (!isTaken(id)) return id;
  }
}
