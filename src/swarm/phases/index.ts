import { crossModelReview } from "./cross-model-review.ts";
import { decompose } from "./decompose.ts";
import { design } from "./design.ts";
import { implement } from "./implement.ts";
import type { PhaseKind } from "./kind.ts";
import { spec } from "./spec.ts";

/** The kinds of phases there are, in the order they have to stand in a pipeline. */
export const PHASE_KINDS: readonly PhaseKind[] = [spec, decompose, design, implement, crossModelReview];
