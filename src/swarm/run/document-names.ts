import type { Documents } from "../context/documents.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { kindOf } from "../pipeline/kind.ts";
import type { Placed } from "../pipeline/schema.ts";

/** The documents of one phase: it does not overwrite what an earlier phase wrote under the same name. */
export function documentsOfPhase(
  documents: Documents,
  { id }: Placed,
  phases: readonly Placed[],
  kinds: readonly PhaseKind[],
): Documents {
  const at = phases.findIndex((phase) => phase.id === id);
  const own = (name: string) => distinct(name, phases.slice(0, at), kinds);
  return {
    ...documents,
    write: (name, ...rest) => documents.write(own(name), ...rest),
    remove: (name) => documents.remove(own(name)),
  };
}

/** All documents that the phases of a pipeline write. */
export function documentsOf(phases: readonly Placed[], kinds: readonly PhaseKind[]): string[] {
  return phases.flatMap((phase, index) =>
    kindOf(kinds, phase)
      .documents(phase)
      .map((name) => distinct(name, phases.slice(0, index), kinds)),
  );
}

/** A name as it is, or with a count if earlier phases write it too. Streams are already numbered across the run. */
function distinct(name: string, before: readonly Placed[], kinds: readonly PhaseKind[]): string {
  if (name.includes("*")) return name;
  const count = 1 + before.filter((phase) => kindOf(kinds, phase).documents(phase).includes(name)).length;
  return count === 1 ? name : name.replace(/(\.[^.]*)?$/, (end) => `~${count}${end}`);
}
