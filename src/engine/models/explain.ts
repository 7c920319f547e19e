import type { WireFailure } from "../wire/failure.ts";
import { callFailed, type RuntimeTrouble, runtimeFailed, type TurnError } from "./failures.ts";
import { explainGitHub } from "./github-failures.ts";
import type { Choice } from "./ladder.ts";
import type { ModelFacts } from "./models.ts";

/** Describes failures for people: whose fault it is and what to do. */
export interface Explainer {
  /** Describes a failure of the runtime itself. */
  troubled(trouble: RuntimeTrouble): TurnError;
  /** Describes a failed model call. */
  failed(failure: WireFailure, model: string, available: readonly ModelFacts[]): TurnError;
}

export function createExplainer({ login, names }: Choice): Explainer {
  return {
    troubled: (trouble) => (login && explainGitHub(trouble, login)) ?? runtimeFailed(trouble),
    failed: (failure, model, available) =>
      (login && explainGitHub(asTrouble(failure), login)) ?? callFailed(failure, model, names, available),
  };
}

/** Converts a failed call to a GitHub model into the form in which the runtime reports its own failures. */
function asTrouble({ fault, status, message }: WireFailure): RuntimeTrouble {
  return fault === "network" ? { message: `fetch failed: ${message}` } : { statusCode: status, message };
}
