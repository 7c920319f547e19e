import type { CopilotSession } from "@github/copilot-sdk";
import type { Steering } from "../protocol/turns.ts";

export interface SteererDeps {
  sdk: Pick<CopilotSession, "send">;
  steering: Steering | undefined;
  /** What the session's record already holds, from an earlier life of the turn. */
  heard: ReadonlySet<number>;
  onFailure: (error: unknown) => void;
}

/** Says into a session, in order, what is said into its turn, and knows when the session has heard all of it. */
export interface Steerer {
  /** The prompt is there: from now on more may be said. */
  start(): void;
  /** The session has taken up a prompt; tells whether it is one of these. */
  took(promptId: string): boolean;
  /** Ends it when nothing is left to be heard; false when the session will go on with what was said. */
  end(): boolean;
  stop(): void;
}

export function createSteerer({ sdk, steering, heard, onFailure }: SteererDeps): Steerer {
  const sent = new Set(heard);
  const ids = new Set<string>();
  const taken = new Set<string>();
  let sending = Promise.resolve();
  let waiting = 0;
  let stopFollowing = () => {};

  const sayMore = () => {
    for (const { seq, text } of steering?.said() ?? []) {
      if (sent.has(seq)) continue;
      sent.add(seq);
      waiting += 1;
      sending = sending
        .then(() => sdk.send({ prompt: text.toWellFormed(), mode: "immediate" }))
        .then((promptId) => {
          ids.add(promptId);
          steering?.accepted(seq, promptId);
        })
        .catch(onFailure)
        .finally(() => {
          waiting -= 1;
        });
    }
  };
  return {
    start() {
      stopFollowing = steering?.onMore(sayMore) ?? stopFollowing;
      sayMore();
    },
    took(promptId) {
      // The news of a prompt can be here before the answer that names it.
      taken.add(promptId);
      return ids.has(promptId) || waiting > 0;
    },
    end() {
      if (waiting > 0 || [...ids].some((id) => !taken.has(id))) return false;
      steering?.close();
      return true;
    },
    stop() {
      stopFollowing();
      steering?.close();
    },
  };
}
