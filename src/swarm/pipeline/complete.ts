import { z } from "zod";
import { isRecord } from "../../lib/is-record.ts";
import { valueAt } from "./file-places.ts";
import type { DeclaredKind } from "./kind.ts";

type Kinds = readonly Pick<DeclaredKind, "name" | "schema" | "standard">[];

/**
 * Fills in what phases leave out. A phase that names no agent takes everything it does not say from the default pipeline; one
 * that names its agent has only its own reviews. A null in the file as `written` means the part is not wanted. The notes say what
 * was filled in.
 */
export function completePhases(raw: object, written: object, kinds: Kinds): { raw: object; notes: string[] } {
  if (!("pipeline" in raw) || !Array.isArray(raw.pipeline)) return { raw, notes: [] };
  const notes: string[] = [];
  const pipeline = raw.pipeline.map((phase: unknown, index) => {
    const kind = isRecord(phase) ? kinds.find(({ name }) => name === phase.phase) : undefined;
    if (!isRecord(phase) || kind?.standard === undefined) return phase;
    const namesNobody = "agent" in kind.standard && !("agent" in phase);
    const isWanted = (key: string) => namesNobody && valueAt(written, ["pipeline", index, key]) !== null;
    const missing = Object.entries(kind.standard).filter(
      ([key]) => !(key in phase) && (isWanted(key) || isScalar(kind.schema.shape[key as "phase"])),
    );
    if (missing.length > 0) notes.push(`pipeline[${index}] (${kind.name}) by default: ${missing.map(describe).join(", ")}`);
    return { ...Object.fromEntries(missing), ...phase };
  });
  return { raw: { ...raw, pipeline }, notes };
}

/** Whether a key is a single value that the phase cannot do without. */
function isScalar(schema: unknown): boolean {
  return schema instanceof z.ZodDefault && !(schema.unwrap() instanceof z.ZodArray);
}

function describe([key, value]: [string, unknown]): string {
  const agentOf = (each: unknown) => (isRecord(each) ? String(each.agent) : String(each));
  return `${key} ${Array.isArray(value) ? `by ${value.map(agentOf).join(" and ")}` : isRecord(value) ? `by ${agentOf(value)}` : String(value)}`;
}
