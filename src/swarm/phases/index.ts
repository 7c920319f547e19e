import { crossModelReview } from "./cross-model-review.ts";
import { decompose } from "./decompose.ts";
import { design } from "./design.ts";
import { implement } from "./implement.ts";
import type { PhaseKind } from "./kind.ts";
import { spec } from "./spec.ts";
import { verify } from "./verify.ts";

/** All kinds of phases. */
export const PHASE_KINDS: readonly PhaseKind[] = [spec, decompose, design, implement, crossModelReview, verify];
