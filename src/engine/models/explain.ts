import type { WireFailure } from "../wire/failure.ts";
import { callFailed, type RuntimeTrouble, runtimeFailed, type TurnError } from "./failures.ts";
import { explainGitHub } from "./github-failures.ts";
import type { Choice } from "./ladder.ts";
import type { ModelFacts } from "./models.ts";

/** Puts failures into words that name whose fault they are and what to do. */
export interface Explainer {
  /** The runtime's own trouble. */
  troubled(trouble: RuntimeTrouble): TurnError;
  /** A failed call to a model. */
  failed(failure: WireFailure, model: string, available: readonly ModelFacts[]): TurnError;
}

export function createExplainer({ login, names }: Choice): Explainer {
  return {
    troubled: (trouble) => (login && explainGitHub(trouble, login)) ?? runtimeFailed(trouble),
    failed: (failure, model, available) =>
      (login && explainGitHub(asTrouble(failure), login)) ?? callFailed(failure, model, names, available),
  };
}

/** A failed call to GitHub's models, in the form in which the runtime tells of its own troubles. */
function asTrouble({ fault, status, message }: WireFailure): RuntimeTrouble {
  return fault === "network" ? { message: `fetch failed: ${message}` } : { statusCode: status, message };
}
